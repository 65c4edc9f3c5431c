"""Judging items in a process that does nothing else; started by `judge_process`, spoken to in lines of JSON.

`judge_item` is the whole of it: the shown case and the hidden ones, put before the exercise's judge. A learner's code
runs in further processes, which `lab.learner_code` starts; `shut_in` is the one place that says how they are isolated.
"""

from __future__ import annotations

import functools
import json
import math
import os
import queue
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import psutil  # type: ignore[import-untyped]

from gpututor import errors
from gpututor.exercises.form import Case, Exercise, Judged
from gpututor.exercises.registry import exercise
from gpututor.lab.cards_pool import CardLimits, Cards, on_cards_apart
from gpututor.lab.incidents import incidents
from gpututor.lab.isolation import bubblewrap, isolated, limits_only
from gpututor.lab.learner_code import one_learner

BUBBLEWRAP, LIMITS = "bubblewrap", "limits"
ISOLATIONS = (BUBBLEWRAP, LIMITS)
MAX_TEXT = 1_000  # characters of a judge's sentence, which may quote the learner
CARD_WALL_S = 240  # beyond what a learner's process may take on the clock in a sandbox, so that its limit is met first
LIKE = 1e-6  # share by which two cases may differ and be the same


@contextmanager
def shut_in(isolation: str) -> Iterator[None]:
    """A block in which learners' code runs isolated this way, and all of it is one learner's.

    Simulated cards are in processes of their own, so what code launched isn't told by its own process.

    Raises:
        IsolationMissing: it isn't there on this machine.
    """
    with ExitStack() as stack:
        stack.enter_context(isolated(bubblewrap() if isolation == BUBBLEWRAP else limits_only()))
        stack.enter_context(one_learner())
        if hasattr(os, "fork"):
            stack.enter_context(on_cards_apart(cards()))
        yield


@functools.lru_cache(maxsize=1)
def cards() -> Cards:
    """This process's server of cards, started with the first card. It ends with this process, whose socket it hears."""
    return Cards(CardLimits(wall_s=CARD_WALL_S), late=True).__enter__()


def judge_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict on an item, as plain data.

    "state", "share" of the marks, "text", "hint", "checks" [words, holds, share], "hidden" [how many, how many passed],
    "case": "none" asked for, the learner's "own", checked and "ours", or "differs" from ours, which was taken then;
    "incidents": what the code did that no answer does, in any case.
    """
    with incidents() as heard:
        verdict = _judged(item)
    return verdict | {"incidents": sorted(set(heard))}


def _judged(item: Mapping[str, Any]) -> dict[str, Any]:
    one = exercise(item["number"])
    case, whose = _case(one, item["case"])
    try:
        shown = one.check(item["answer"], case)
    except Exception as error:  # noqa: BLE001
        _let_through(error)
        return failed(one, f"its data can't be judged ({type(error).__name__})") | {"case": whose}
    # Who earns nothing in the shown case earns nothing anyway; so an endless loop runs once, not once for each case.
    hidden = [_hidden(one, item["answer"], each) for each in item["hidden"]] if shown.earned_share else []
    return _verdict(shown, hidden) | {"case": whose}


def _case(one: Exercise, case: Case) -> tuple[Case, str]:
    """The case to judge by, and whose it is."""
    if not case:
        return case, "own" if one.needs_run else "none"
    try:
        ours = one.case_from(case) if one.case_from else None
    except Exception as error:  # noqa: BLE001
        _let_through(error)
        ours = None
    if ours is None:
        return case, "own"
    return ours, "ours" if alike(_facts(ours), _facts(case)) else "differs"


def _facts(case: Case) -> Any:
    """What a case says, without its words, as JSON has it."""
    return json.loads(json.dumps({key: value for key, value in case.items() if key != "words"}))


def alike(a: Any, b: Any) -> bool:
    """Whether two values of JSON say the same, numbers within `LIKE`.

    >>> alike({"a": [1, 2.0000001]}, {"a": [1.0, 2]}), alike([1], [1, 2]), alike(True, 1)
    (True, False, False)
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        try:
            return math.isclose(a, b, rel_tol=LIKE)
        except OverflowError:  # an integer that no float holds
            return bool(a == b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    return bool(a == b)


def _hidden(one: Exercise, answer: str, case: Case) -> Judged:
    """The judge's word on one hidden case; it never leaves this process."""
    try:
        return one.check(answer, case)
    except Exception as error:  # noqa: BLE001
        _let_through(error)
        return Judged("wrong", "")


def _let_through(error: Exception) -> None:
    """An error of this machine's, not of the answer's, is the grader's to handle: the item is tried again."""
    if isinstance(error, errors.SandboxFailed | errors.CardsFailed):
        raise error


def earned(shown: Judged, hidden: Sequence[Judged]) -> float:
    """The share of the marks.

    Without hidden cases it is what the shown case earned. With them they decide: each gives the shares of the checks
    that hold in it and in the shown case too, and the mean of them counts. So code that knows only the shown case earns
    nothing, and one that fails in one hidden case of three keeps two thirds.
    """
    if not hidden:
        return shown.earned_share
    return round(sum(_both(shown, each) for each in hidden) / len(hidden), 9)


def _both(shown: Judged, other: Judged) -> float:
    if shown.checks and len(shown.checks) == len(other.checks):
        return sum(a.share for a, b in zip(shown.checks, other.checks, strict=True) if a.holds and b.holds)
    return min(shown.earned_share, other.earned_share)


def _verdict(shown: Judged, hidden: Sequence[Judged]) -> dict[str, Any]:
    share = earned(shown, hidden)
    share = min(1.0, max(0.0, share)) if math.isfinite(share) else 0.0
    state = shown.state
    if state != "unanswered":
        state = "right" if share >= 1 else "partial" if share > 0 else "wrong"
    return {
        "state": state,
        "share": share,
        "text": plain(shown.text),
        "hint": shown.hint,
        "checks": [[plain(check.words), bool(check.holds), check.share] for check in shown.checks],
        "hidden": [len(hidden), sum(each.earned_share >= 1 for each in hidden)],
        "trouble": "",
    }


def failed(one: Exercise, why: str) -> dict[str, Any]:
    """The verdict on an item whose judging came to nothing, by what the answer or its case holds."""
    again = f"Open lesson {one.lesson}, let its run end, answer and save again." if one.needs_run else ""
    text = f"No points: {why}. {again}".strip()
    told = {"state": "wrong", "share": 0.0, "text": text, "hint": None, "checks": [], "hidden": [0, 0]}
    told |= {"incidents": []}
    return told | {"case": "own" if one.needs_run else "none", "trouble": why}


def plain(text: str) -> str:
    """A judge's sentence, which may quote the learner: on one line, of bounded length, without half signs."""
    return " ".join(text.split())[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8")


def main() -> None:
    """Read bundles on standard input, a line each; answer each item with a line, until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # whatever prints here must not speak for us
    waiting: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(waiting,), daemon=True).start()
    while True:
        bundle = json.loads(waiting.get())
        try:
            with shut_in(bundle["isolation"]):
                print(json.dumps({"ready": True}), file=answers, flush=True)
                for k, item in enumerate(bundle["items"]):
                    print(json.dumps({"k": k, "verdict": judge_item(item)}), file=answers, flush=True)
            told = {"done": True}
        except errors.GpututorError as error:
            told = {"refused": str(error), "kind": type(error).__name__}  # type: ignore[dict-item]
        print(json.dumps(told), file=answers, flush=True)


def _listen(waiting: queue.Queue[str]) -> None:
    """Hand on what comes in. When whoever started us is gone, so are we, and all that we started."""
    for line in sys.stdin:
        waiting.put(line)
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.Error:
            continue
    os._exit(1)


if __name__ == "__main__":
    main()
