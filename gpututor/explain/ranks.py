"""Several ranks of one job, each with a trace: who is waited for.

In a collective the first to come waits for the last. So the rank that spends least time in collectives beyond what the
others need is the one that the others wait for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpututor.causes import find_causes
from gpututor.errors import TimelineError
from gpututor.explain.explained import Explained
from gpututor.explain.late import awaited, collectives
from gpututor.text import duration
from gpututor.timeline import Activity, covered_ns

TRACE = re.compile(r"\.json(\.gz)?$", re.IGNORECASE)
WORTH_SAYING_SHARE = 0.05
"""Our choice: ranks that differ by less than a twentieth of a step wait for each other as much as chance lets them."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a job. Times are nanoseconds of collectives a step, by rank in the order of `explained`."""

    explained: tuple[Explained, ...]
    talking_ns: tuple[float, ...]

    @property
    def last(self) -> int | None:
        """The rank that others wait for; None where none stands out, or nothing is exchanged."""
        if len(self.talking_ns) < 2 or not any(self.talking_ns):
            return None
        least = min(range(len(self.talking_ns)), key=self.talking_ns.__getitem__)
        return least if self.waited_ns / self._unit_ns(least) >= WORTH_SAYING_SHARE else None

    @property
    def waited_ns(self) -> float:
        """How long the rank that waits most waits for the last one, a step."""
        return max(self.talking_ns) - min(self.talking_ns)

    def _unit_ns(self, rank: int) -> float:
        ledger = self.explained[rank].window.ledger
        return ledger.step_ns or ledger.window_ns


def across(several: Sequence[Explained]) -> Ranks:
    """What the ranks spend in collectives; the findings of each say what it waits for the last one."""

    def talking_ns(one: Explained) -> float:
        window = one.window.timeline
        mine = {k for k, lane in enumerate(window.lanes) if one.device is None or lane.device in (None, one.device)}
        spans = (s for s in window.on(Activity.COLLECTIVE) if s.lane in mine)
        return covered_ns(spans, window.window_ns) / (one.window.ledger.n_steps or 1)

    return Ranks(tuple(_with_waits(several)), tuple(talking_ns(one) for one in several))


def _with_waits(several: Sequence[Explained]) -> Iterator[Explained]:
    """The ranks, with what each waits for the others among its findings."""
    ranks, names = [collectives(one.timeline, one.device) for one in several], [one.name for one in several]
    for k, one in enumerate(several):
        waited = awaited(ranks, names, k, one_clock=False)
        if waited is None:
            yield one
        else:
            window = one.window
            yield replace(one, findings=find_causes(window.timeline, window.ledger, awaited=waited))


def traces_in(folder: Path) -> list[Path]:
    """The traces of a folder, by name.

    Raises:
        TimelineError: there is none.
    """
    found = sorted(path for path in folder.iterdir() if path.is_file() and TRACE.search(path.name))
    if not found:
        raise TimelineError(f"{folder} holds no trace: no file there ends in .json or .json.gz")
    return found


def sentences(ranks: Ranks) -> list[str]:
    """What the ranks say together."""
    times = [one.window.ledger.step_ns or one.window.ledger.window_ns for one in ranks.explained]
    told = [f"{len(times)} ranks; a step takes {duration(min(times))} to {duration(max(times))}."]
    last = ranks.last
    if last is not None:
        told.append(
            f"{ranks.explained[last].name} comes last: it spends {duration(ranks.talking_ns[last])} a step in "
            f"collectives, another {duration(ranks.talking_ns[last] + ranks.waited_ns)}, most of it waiting for this "
            "one. Look for what this rank does more of: longer samples, a slower loader, a slower card."
        )
    elif any(ranks.talking_ns):
        told.append("No rank stands out: all spend about the same time in collectives.")
    else:
        told.append("No rank exchanges anything in its trace.")
    return told


def as_data(ranks: Ranks) -> dict[str, Any]:
    """What the ranks say together, as plain data."""
    last = ranks.last
    return {
        "n_ranks": len(ranks.explained),
        "collectives_ns_per_step": {one.name: ns for one, ns in zip(ranks.explained, ranks.talking_ns, strict=True)},
        "last": None if last is None else ranks.explained[last].name,
        "waited_ns_per_step": ranks.waited_ns if len(ranks.explained) > 1 else None,
        "sentences": sentences(ranks),
    }
