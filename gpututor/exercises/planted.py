"""The diagnosis of a recording: a training loop in which one cause was planted, told by its timeline in words.

The loop is a tape, made here from a seed and priced on a machine like any other; which cause it has follows from the
seed alone, and stands in no case. Numbers of kernels, bytes and waits are drawn too, so no two are alike.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from gpututor.cards import DEFAULT_MACHINE
from gpututor.exercises.form import Case, Exercise, Judged
from gpututor.exercises.typed import judge_choice
from gpututor.ledger import Account
from gpututor.lookup import machine_named
from gpututor.model.kernels import Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, CopyCall, EndRun, Entry, HostWork, Sync, Tape, TapeOp
from gpututor.replay import Played, play
from gpututor.text import duration, percent
from gpututor.timeline import Activity, covered_ns

N_STEPS = 6
MB = 10**6
Loop = list[Entry]


@dataclass(frozen=True, slots=True)
class Cause:
    """What can be planted: its account in the ledger, the option that names it with its reason, and a loop with it.

    `missed` is the sentence for who chose it where it isn't.
    """

    account: Account
    option: str
    missed: str
    step: Callable[[random.Random], Loop]


def _kernels(n: int, each_bytes: int, per_block: int = 512) -> Loop:
    kernel = Stream("elementwise", each_bytes, each_bytes // 8, each_bytes // 8, elements_per_block=per_block)
    return [TapeOp("aten.add.Tensor", HostKind.LIGHT, "forward", (kernel,))] * n


def _input(long_ns: int, n_bytes: int, *, pinned: bool = True) -> Loop:
    return [
        HostWork(Activity.INPUT, "next batch", long_ns),
        CopyCall("batch to the card", True, n_bytes, pinned, blocking=not pinned),
    ]


def _launches(rng: random.Random) -> Loop:
    return _input(20_000, MB // 10) + _kernels(rng.randint(150, 300), rng.randint(100, 400) * 1000)


def _reads(rng: random.Random) -> Loop:
    reads: Loop = [Sync("item")] * 3  # such as a loss, a count, and whether a number is none
    return _input(20_000, MB // 10) + (_kernels(1, rng.randint(1, 3) * MB) + reads) * rng.randint(60, 90)


def _waits_for_input(rng: random.Random) -> Loop:
    return _input(rng.randint(12, 30) * 10**6, MB) + _kernels(rng.randint(40, 60), 40 * MB) + [Sync("item")]


def _copies(rng: random.Random) -> Loop:
    return _input(50_000, rng.randint(120, 250) * MB, pinned=False) + _kernels(rng.randint(40, 60), 40 * MB)


def _few_blocks(rng: random.Random) -> Loop:
    each = rng.randint(20, 40) * MB
    return _input(50_000, MB) + _kernels(rng.randint(40, 70), each, each // 8 // rng.randint(6, 12))


def _memory(rng: random.Random) -> Loop:
    return _input(50_000, MB) + _kernels(rng.randint(40, 80), rng.randint(150, 300) * MB)


CAUSES: tuple[Cause, ...] = (
    Cause(
        Account.LAUNCH_OVERHEAD,
        "Launch overhead: the host launches a kernel more slowly than the card runs it",
        "Were it the launches, the host would hardly do anything else, and kernels would be short. Compare the two.",
        _launches,
    ),
    Cause(
        Account.BLOCKING_SYNC,
        "Blocking reads: the host stops to read a value, and the card waits until it launches again",
        "Were it the reads, the host would stand in them again and again, and the card would be idle too. Is it?",
        _reads,
    ),
    Cause(
        Account.WAITING_FOR_INPUT,
        "The loader: the next batch isn't ready when the card could begin with it",
        "Were it the loader, the host would spend its time on the next batch. Read that line again.",
        _waits_for_input,
    ),
    Cause(
        Account.EXPOSED_COPY,
        "Pageable copies: the batch crosses the link while the card has nothing to do",
        "Were it the copy, the host would stand in it. Read that line again.",
        _copies,
    ),
    Cause(
        Account.TOO_FEW_BLOCKS,
        "Too few blocks: kernels run nearly all the time, on a few of the SMs",
        "Compare the SMs that have work with the time in which some kernel runs: do few of them work?",
        _few_blocks,
    ),
    Cause(
        Account.MEMORY_BOUND,
        "Memory-bound kernels: all SMs have work, and wait for bytes rather than for arithmetic",
        "Kernels wait for bytes where some kernel always runs and all SMs have work. Is it so here?",
        _memory,
    ),
)


@lru_cache(maxsize=64)
def planted(seed: int) -> Cause:
    """The cause that a seed plants; the same on every machine."""
    return random.Random(f"cause {seed}").choice(CAUSES)


@lru_cache(maxsize=64)
def recorded(seed: int, machine: str = DEFAULT_MACHINE) -> Played:
    """The loop of a seed on a machine."""
    rng = random.Random(f"loop {seed}")
    step = planted(seed).step(rng)
    entries: list[Entry] = [each for _ in range(N_STEPS) for each in (BeginStep(), *step)]
    return play(
        Tape("a recorded loop", [*entries, Sync("synchronize"), EndRun()], [None] * N_STEPS), machine_named(machine)
    )


def case_of(seed: int, machine: str = DEFAULT_MACHINE) -> Case:
    """What is shown of a seed's loop: its timeline as a table. The cause is no part of it."""
    played = recorded(seed, machine)
    options = [cause.option for cause in CAUSES]
    random.Random(f"options {seed}").shuffle(options)
    words = {
        "card": played.machine.card.name,
        "step": duration(played.step_ns),
        "kernels": f"{played.ledger.n_kernels / N_STEPS:,.0f}",
        "kernel": duration(played.kernel_ns),
        "table": "\n".join(["| what | share of the time |", "|---|---|", *_lines(played)]),
    }
    return {"seed": seed, "machine": machine, "words": words, "options": options}


def _lines(played: Played) -> list[str]:
    """The timeline in words: what the host did, what the card did, and how much of it had work."""
    timeline, fill = played.timeline, played.ledger.sm_fill_share

    def share(*activities: Activity) -> str:
        spans = [span for span in timeline.spans if span.activity in activities]
        begin, end = timeline.window_ns
        return percent(covered_ns(spans, (begin, end)) / (end - begin))

    told = {
        "host: Python, framework and launches": share(Activity.PYTHON, Activity.DISPATCH, Activity.LAUNCH),
        "host: stands in a read or a wait": share(Activity.SYNC),
        "host: stands in a copy": share(Activity.COPY_CALL),
        "host: prepares the next batch": share(Activity.INPUT),
        "card: some kernel runs": percent(played.ledger.gpu_util_share),
        "card: a copy runs": share(Activity.COPY_TO_GPU),
        "SMs with work, of all, over all the time": "unknown" if fill is None else percent(fill),
    }
    return [f"| {what} | {how_much} |" for what, how_much in told.items()]


def _judge(answer: object, case: Case) -> Judged:
    cause = planted(_seed(case))
    account = recorded(_seed(case)).ledger.share(cause.account)
    why = {each.option: each.missed for each in CAUSES}
    why[cause.option] = f"So it was made. In the ledger it is “{cause.account.value}”, {percent(account)} of the time."
    return judge_choice(str(answer), cause.option, why)


def _seed(case: Case) -> int:
    seed = case.get("seed", 0)
    return seed if type(seed) is int else 0


def _case_from(case: Case) -> Case:
    """The case of the seed that a case names, on the machine that all are shown on."""
    return case_of(_seed(case))


def seed_for(learner: str) -> int:
    """The seed of a learner's loop: who sits side by side has different ones."""
    return random.Random(f"learner {learner}").randint(1, 9999)


HELD_UP = Exercise(
    "10.3",
    "What holds it up",
    "diagnosis",
    "A training loop was recorded on a {card}: {step} a step, {kernels} kernels in it, of {kernel} each. One thing "
    "holds it up more than all else.\n\n{table}\n\nWhat is it?",
    (
        "First the card: is it busy nearly all the time? If so, the host holds nothing up.",
        "If it isn't, look where the host is meanwhile: it launches, stands in a read or a copy, or makes the batch.",
        "If it is busy, compare with the SMs that have work: few of them, or all?",
    ),
    _judge,
    options=tuple(cause.option for cause in CAUSES),
    case_from=_case_from,
)
