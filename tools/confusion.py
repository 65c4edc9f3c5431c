"""Traces with a known cause, planted on simulated cards, against the verdict of `gpututor explain`.

    python -m tools.confusion            prints the table
    python -m tools.confusion --write    and puts it into docs/explain.md

Each loop is drawn from a seed: numbers of kernels, sizes and waits differ, and so do the cards. It is priced, written
as a trace with no more in it than a profiler writes, read again and explained. One cause is planted, two, or none.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gpututor.cards import Machine  # noqa: E402
from gpututor.causes import KNOWN, Cause  # noqa: E402
from gpututor.exercises.planted import CAUSES, MB, Loop  # noqa: E402
from gpututor.explain import Explained, explain  # noqa: E402
from gpututor.ledger import Account  # noqa: E402
from gpututor.lookup import machine_named  # noqa: E402
from gpututor.model.exchange import CardsExchange, RanksExchange, WaitExchange  # noqa: E402
from gpututor.model.kernels import Gemm  # noqa: E402
from gpututor.model.ranks import RankTapes  # noqa: E402
from gpututor.model.spec import HostKind  # noqa: E402
from gpututor.model.tape import BeginStep, CopyCall, EndRun, Entry, HostWork, Sync, Tape, TapeOp  # noqa: E402
from gpututor.timeline import Activity, Timeline  # noqa: E402
from gpututor.trace.writing import write  # noqa: E402

MACHINES = ("p3.2xlarge", "g4dn.xlarge", "A100-SXM4-80GB", "H100-SXM", "desktop-RTX-4090")
SEVERAL_CARDS = ("p3.8xlarge", "p4d.24xlarge")
N_STEPS = 6
N_EACH = 7
PAGE = ROOT / "docs" / "explain.md"
MAKE: dict[Account, Callable[[random.Random], Loop]] = {
    cause.account: cause.step for cause in CAUSES if cause.account is not Account.MEMORY_BOUND
}
"""Loops with one cause, by its account. A trace doesn't say a kernel's bytes, so memory can't be told from it."""

NAMES = {
    Cause.GARBAGE_COLLECTION: ("<built-in function collect>", "gc", "gc.collect"),
    Cause.COMPILING: (
        "_compile.compile_inner (dynamo_timed)",
        "entire_frame_compile",
        "torch/_dynamo/convert_frame.py(631): __call__",
        "torch/_inductor/compile_fx.py(1200): compile_fx",
        "CachingAutotuner.benchmark_all_configs (dynamo_timed)",
    ),
    Cause.PROFILING: ("Activity Buffer Request", "Buffer Flush", "torch/profiler/profiler.py(821): step"),
}
"""Names that torch and CUPTI give to what stops the host."""

WAITING = ", waiting"
"""How the name of a simulated collective ends while it waits for other ranks."""

BETWEEN = re.compile(r"(<!-- confusion: begins -->\n).*?(<!-- confusion: ends -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Planted:
    """A loop with causes planted in it, the largest first; none for a healthy one."""

    name: str
    machine: str
    causes: tuple[str, ...]
    step: tuple[Entry, ...]
    n_cards: int = 1
    late: tuple[Entry, ...] = ()
    """What the other rank does meanwhile, where there are two."""


def work(rng: random.Random) -> Loop:
    """Large products in half precision, which keep a card busy: what a healthy loop does."""
    size = rng.choice((6144, 7168, 8192))
    gemm = Gemm("ampere_fp16_s16816gemm_fp16_128x128", size, size, size, 3 * 2 * size * size, "fp16")
    return [TapeOp("aten.mm.default", HostKind.GEMM, "forward", (gemm,))] * rng.randint(12, 20)


def batch() -> Loop:
    """The next batch, ready and small."""
    return [
        HostWork(Activity.INPUT, "next batch", 20_000),
        CopyCall("batch", True, MB // 10, pinned=True, blocking=False),
    ]


def pause(rng: random.Random, step_ns: int) -> Loop:
    """Something else than training, for a third of a step and more."""
    return [Sync("item"), HostWork(Activity.PAUSE, "checkpoint", rng.randint(step_ns // 2, step_ns))]


def planted() -> Iterator[Planted]:
    """All loops."""
    for account in MAKE:
        yield from _alone(account)
    for k in range(N_EACH):
        rng = random.Random(f"communication {k}")
        exchange = CardsExchange("all_reduce", rng.randint(1200, 2500) * MB, (0, 1))
        loop: Loop = [*batch(), *work(rng)[: rng.randint(2, 4)], exchange, Sync("item")]
        causes = (Account.EXPOSED_COMMUNICATION.value,)
        yield Planted(causes[0], SEVERAL_CARDS[k % len(SEVERAL_CARDS)], causes, tuple(loop), 2)
    for k in range(N_EACH):
        healthy: Loop = [*batch(), *work(random.Random(f"none {k}")), Sync("item")]
        yield Planted("none", MACHINES[k % len(MACHINES)], (), tuple(healthy))
    yield from _together(Account.WAITING_FOR_INPUT, Account.PAUSE, lambda rng: pause(rng, 30 * MB))
    yield from _together(Account.WAITING_FOR_INPUT, Account.LAUNCH_OVERHEAD, MAKE[Account.LAUNCH_OVERHEAD])
    yield from _together(Account.EXPOSED_COPY, Account.BLOCKING_SYNC, MAKE[Account.BLOCKING_SYNC])
    for cause in NAMES:
        yield from _interrupted(cause)
    collected = words(Cause.GARBAGE_COLLECTION)
    for k in range(N_EACH):
        rng = random.Random(f"input and collection {k}")
        step = [*MAKE[Account.WAITING_FOR_INPUT](rng), *interruption(rng, Cause.GARBAGE_COLLECTION, 15, 30)]
        both = (Account.WAITING_FOR_INPUT.value, collected)
        yield Planted(" and ".join(both), MACHINES[k % len(MACHINES)], both, tuple(step))
    yield from _late()


def interruption(rng: random.Random, cause: Cause, least_ms: int, most_ms: int) -> Loop:
    """Something that stops the host once the GPU has nothing left to do, by a name of torch's own."""
    activity = Activity.STARTUP if cause is Cause.COMPILING else Activity.PAUSE
    return [Sync("item"), HostWork(activity, rng.choice(NAMES[cause]), rng.randint(least_ms, most_ms) * MB)]


def _interrupted(cause: Cause) -> Iterator[Planted]:
    for k in range(N_EACH):
        rng = random.Random(f"{cause.name} {k}")
        step = [*batch(), *work(rng), *interruption(rng, cause, 100, 400)]
        yield Planted(words(cause), MACHINES[k % len(MACHINES)], (words(cause),), tuple(step))


def _late() -> Iterator[Planted]:
    """Two ranks of which the other has more to compute, or a slower loader."""
    name = words(Cause.STRAGGLING_RANK)
    for k in range(N_EACH):
        rng = random.Random(f"late {k}")
        own = [*batch(), *work(rng)]
        more: Loop = work(rng) if k % 2 else [HostWork(Activity.INPUT, "next batch", rng.randint(100, 400) * MB)]
        machine = SEVERAL_CARDS[k % len(SEVERAL_CARDS)]
        yield Planted(name, machine, (name,), tuple(own), 2, late=(*more, *own))


def _alone(account: Account) -> Iterator[Planted]:
    for k in range(N_EACH):
        step = MAKE[account](random.Random(f"{account.name} {k}"))
        yield Planted(account.value, MACHINES[k % len(MACHINES)], (account.value,), tuple(step))


def _together(first: Account, second: Account, then: Callable[[random.Random], Loop]) -> Iterator[Planted]:
    for k in range(N_EACH):
        rng = random.Random(f"{first.name} {second.name} {k}")
        step = [*MAKE[first](rng), *then(rng)]
        if first is Account.EXPOSED_COPY:  # a copy takes as long as several rounds of reads
            step += then(rng) * 2
        both = (first.value, second.value)
        yield Planted(" and ".join(both), MACHINES[k % len(MACHINES)], both, tuple(step))


def _one_process(one: Planted, machine: Machine) -> Timeline:
    entries: list[Entry] = [each for _ in range(N_STEPS) for each in (BeginStep(), *one.step)]
    ends = Sync("synchronize"), EndRun()
    return Tape("a recorded loop", [*entries, *ends], [None] * N_STEPS, n_cards=one.n_cards).price(machine)


def _two_ranks(one: Planted, machine: Machine) -> Timeline:
    """Each step of both ends with an all-reduce between them."""
    tapes = []
    for step in (one.step, one.late):
        entries: list[Entry] = []
        for k in range(1, N_STEPS + 1):
            exchange = RanksExchange("all_reduce", 50 * MB, (0, 1), k, 0)
            entries += [BeginStep(), *step, exchange, WaitExchange(k, 0), Sync("item")]
        tapes.append(Tape("a recorded loop", [*entries, EndRun()], [None] * N_STEPS))
    return RankTapes(tapes, 2).price(machine)


def as_recorded(timeline: Timeline) -> Timeline:
    """A collective's wait for other ranks and its exchange as one kernel, which is what NCCL runs."""
    waits = {(s.lane, s.end_ns): s.start_ns for s in timeline.spans if s.name.endswith(WAITING)}
    spans = []
    for span in timeline.spans:
        came = waits.get((span.lane, span.start_ns)) if span.activity is Activity.COLLECTIVE else None
        if not span.name.endswith(WAITING):
            spans.append(span if came is None else structs.replace(span, start_ns=came))
    return replace(timeline, spans=tuple(spans))


def verdict(one: Planted, folder: Path) -> Explained:
    """What `explain` makes of the loop's trace."""
    machine, path = machine_named(one.machine), folder / "trace.json"
    played = _two_ranks(one, machine) if one.late else _one_process(one, machine)
    write(as_recorded(played), path, ours=False)
    return explain(path, device=0 if one.n_cards > 1 else None)


def words(cause: Cause) -> str:
    """A cause that explains a part of an account, in words; the others go by their accounts."""
    return cause.name.lower().replace("_", " ")


def named(explained: Explained, n: int) -> tuple[str, ...]:
    """The words for the `n` largest findings, or for none."""
    found = [
        words(f.cause) if KNOWN[f.cause].part_of else f.account.value
        for f in explained.findings
        if f.account is not None and f.share is not None
    ]
    return tuple(found[:n]) or (explained.findings[0].cause.value,)


def right(one: Planted, explained: Explained) -> bool:
    """Whether the largest findings are what was planted, or none is named where none was."""
    if not one.causes:
        return not any(f.share is not None for f in explained.findings)
    return set(named(explained, len(one.causes))) == set(one.causes)


def table(folder: Path) -> tuple[list[str], int, int]:
    """The lines of the table in Markdown, how many verdicts were right, and how many there are."""
    seen: dict[str, Counter[str]] = {}
    n_right = n_all = 0
    for one in planted():
        explained = verdict(one, folder)
        seen.setdefault(one.name, Counter())[" and ".join(named(explained, max(1, len(one.causes))))] += 1
        n_right += right(one, explained)
        n_all += 1
    lines = ["| planted | traces | verdict |", "|---|---|---|"]
    for name, counts in seen.items():
        told = "; ".join(f"{words}: {n}" for words, n in counts.most_common())
        lines.append(f"| {name} | {counts.total()} | {told} |")
    return lines, n_right, n_all


def main() -> int:
    """Print the table; 0 where at least 95 % are right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"put it into {PAGE.relative_to(ROOT)}")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        lines, n_right, n_all = table(Path(place))
    text = "\n".join([*lines, "", f"{n_right} of {n_all} are right.", ""])
    print(text)
    if told.write:
        PAGE.write_text(BETWEEN.sub(lambda m: m[1] + text + m[2], PAGE.read_text("utf-8")), encoding="utf-8")
    return 0 if n_right >= 0.95 * n_all else 1


if __name__ == "__main__":
    sys.exit(main())
