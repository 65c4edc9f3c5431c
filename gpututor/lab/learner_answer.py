"""What a learner's process handed back, in our words. All of it may be made up, so nothing in it is trusted."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from gpututor.lab.limits import Cut, too_much_memory
from gpututor.lab.processes import how_it_ended

DEEPEST = 100  # lists in lists; beyond it whoever walks through an answer would run out of stack
_HALF_A_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class LearnerRun:
    """What a learner's function gave: `values`, one a call, or a `sentence` and, when known, the `line` it is about.

    A value of None also stands for an unanswered `...`. `printed` is the beginning of what the code printed, `cut` the
    limit that it went beyond, if it did. Texts are the learner's: escape them before they go into a page.
    """

    values: tuple[Any, ...] | None
    sentence: str | None = None
    line: int | None = None
    printed: str = ""
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of the process: how many calls of which code, in how much memory; and the mark of its answer."""

    code: str
    n_calls: int
    memory_mb: int
    mark: str


def read_answer(answer: bytes, returncode: int | None, asked: Asked, printed: str) -> LearnerRun:
    """The process's answer, or one sentence.

    It begins after this run's mark: what else the code wrote where the answer goes, such as a guess at one, is no
    part of it.
    """
    _, mark, told_json = answer.rpartition(asked.mark.encode())
    try:
        told = json.loads(told_json) if mark else {}
        if "values" in told:
            return LearnerRun(_values(told["values"], asked.n_calls, told_json), printed=printed)
        if "missing" in told:
            name = _text(told["missing"])[:80]
            text = f"Your code defines no function called {name}; keep the name that was there."
            return LearnerRun(None, text, None, printed)
        if "not_data" in told:
            what = _text(told["not_data"])[:200]
            text = f"Your function gave back {what}; give back a number, a text or a list."
            return LearnerRun(None, text, None, printed)
        return _fault(told["fault"], told["call"], asked, printed)
    except (ValueError, KeyError, TypeError, AttributeError):
        how = how_it_ended(returncode)
    except RecursionError:
        text = f"Your function gave back lists in lists, more than {DEEPEST} deep; give back only what is asked."
        return LearnerRun(None, text, None, printed)
    return LearnerRun(None, f"Your code ended its own process ({how}) before it gave an answer.", None, printed)


def _values(values: Any, n_calls: int, told_json: bytes) -> tuple[Any, ...]:
    if not isinstance(values, list) or len(values) != n_calls:
        raise TypeError("not one value a call")
    level, depth = values, 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise RecursionError
        level = [
            part
            for each in level
            if isinstance(each, list | dict)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
    if _HALF_A_CHARACTER.search(told_json.decode("ascii", "replace")):
        return tuple(_whole(each) for each in values)
    return tuple(values)


def _whole(value: Any) -> Any:
    """The value with half characters replaced, since no file and no page can hold them."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {_text(name): _whole(each) for name, each in value.items()}
    return value


def _text(value: object) -> str:
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _fault(fault: dict[str, Any], call: object, asked: Asked, printed: str) -> LearnerRun:
    kind, message = _text(fault["kind"])[:80], " ".join(_text(fault["message"]).split())[:300]
    line = fault["line"] if isinstance(fault["line"], int) else None
    lines = asked.code.splitlines()
    quoted = lines[line - 1].strip()[:80] if line is not None and 0 < line <= len(lines) else ""
    where = "" if line is None else f"Line {line}" + (f" ({quoted})" if quoted else "") + ": "
    if kind == "TypeError" and line is None and isinstance(call, int):
        where = "Calling your function: "
    words = {
        "MemoryError": too_much_memory(asked.memory_mb),
        "RecursionError": "your function calls itself without an end (RecursionError).",
        "SystemExit": "your code called sys.exit, so there is no answer; let the function return.",
    }.get(kind, f"{kind}: {message}" if message else kind)
    sentence = where + words if where else words[:1].upper() + words[1:]
    return LearnerRun(None, sentence, line, printed)
