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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gpututor.exercises.planted import CAUSES, MB, Loop  # noqa: E402
from gpututor.explain import Explained, explain  # noqa: E402
from gpututor.ledger import Account  # noqa: E402
from gpututor.lookup import machine_named  # noqa: E402
from gpututor.model.exchange import CardsExchange  # noqa: E402
from gpututor.model.kernels import Gemm  # noqa: E402
from gpututor.model.spec import HostKind  # noqa: E402
from gpututor.model.tape import BeginStep, CopyCall, EndRun, HostWork, Sync, Tape, TapeOp  # noqa: E402
from gpututor.timeline import Activity  # noqa: E402
from gpututor.trace.writing import write  # noqa: E402

MACHINES = ("p3.2xlarge", "g4dn.xlarge", "A100-SXM4-80GB", "H100-SXM", "desktop-RTX-4090")
SEVERAL_CARDS = ("p3.8xlarge", "p4d.24xlarge")
N_STEPS = 6
N_EACH = 7
PAGE = ROOT / "docs" / "explain.md"
BETWEEN = re.compile(r"(<!-- confusion: begins -->\n).*?(<!-- confusion: ends -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Planted:
    """A loop with causes planted in it, the largest first; none for a healthy one."""

    name: str
    machine: str
    causes: tuple[Account, ...]
    step: tuple[object, ...]
    n_cards: int = 1


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
    known = {cause.account: cause.step for cause in CAUSES if cause.account is not Account.MEMORY_BOUND}
    for account, step in known.items():
        for k in range(N_EACH):
            rng = random.Random(f"{account.name} {k}")
            yield Planted(account.value, MACHINES[k % len(MACHINES)], (account,), tuple(step(rng)))
    for k in range(N_EACH):
        rng = random.Random(f"communication {k}")
        exchange = [CardsExchange("all_reduce", rng.randint(1200, 2500) * MB, (0, 1))]
        step = (*batch(), *work(rng)[: rng.randint(2, 4)], *exchange, Sync("item"))
        machine = SEVERAL_CARDS[k % len(SEVERAL_CARDS)]
        yield Planted("exposed communication", machine, (Account.EXPOSED_COMMUNICATION,), step, 2)
    for k in range(N_EACH):
        rng = random.Random(f"none {k}")
        yield Planted("none", MACHINES[k % len(MACHINES)], (), (*batch(), *work(rng), Sync("item")))
    waits = known[Account.WAITING_FOR_INPUT]
    for k in range(N_EACH):
        rng = random.Random(f"pause {k}")
        step = (*waits(rng), *pause(rng, 30 * MB))
        causes = (Account.PAUSE, Account.WAITING_FOR_INPUT)
        yield Planted("pauses and waiting for input", MACHINES[k % len(MACHINES)], causes, step)
    for first, second in (
        (Account.WAITING_FOR_INPUT, Account.LAUNCH_OVERHEAD),
        (Account.EXPOSED_COPY, Account.BLOCKING_SYNC),
    ):
        for k in range(N_EACH):
            rng = random.Random(f"{first.name} {second.name} {k}")
            step = (*known[first](rng), *known[second](rng) * 3)
            yield Planted(f"{first.value} and {second.value}", MACHINES[k % len(MACHINES)], (first, second), step)


def verdict(one: Planted, folder: Path) -> Explained:
    """What `explain` makes of the loop's trace."""
    entries = [each for _ in range(N_STEPS) for each in (BeginStep(), *one.step)]
    ends = Sync("synchronize"), EndRun()
    tape = Tape("a recorded loop", [*entries, *ends], [None] * N_STEPS, n_cards=one.n_cards)
    path = folder / "trace.json"
    write(tape.price(machine_named(one.machine)), path, ours=False)
    return explain(path, device=0 if one.n_cards > 1 else None)


def named(explained: Explained, n: int) -> tuple[str, ...]:
    """The accounts of the `n` largest findings, or the words for none."""
    found = [f.account.value for f in explained.findings if f.account is not None and f.share is not None]
    return tuple(found[:n]) or (explained.findings[0].cause.value,)


def right(one: Planted, explained: Explained) -> bool:
    """Whether the largest findings are what was planted, or none is named where none was."""
    if not one.causes:
        return not any(f.share is not None for f in explained.findings)
    return set(named(explained, len(one.causes))) == {account.value for account in one.causes}


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
