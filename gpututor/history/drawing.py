"""Runs as a line of blocks for a terminal, and in words."""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.history.changes import Change
from gpututor.history.entry import Entry
from gpututor.text import dollars, duration, percent

BLOCKS = "▁▂▃▄▅▆▇█"
SHOWN = 60  # blocks: what fits beside a name on 80 columns


def sparkline(values: Sequence[float | None]) -> str:
    """Values as blocks from zero to the largest, the lowest block for anything above zero, a blank for None.

    >>> sparkline([0.0, 4.0, 8.0, None, 8.0])
    '▁▄█ █'
    """
    top = max((v for v in values if v is not None), default=0.0)
    return "".join(" " if v is None else _block(v, top) for v in values)


def _block(value: float, top: float) -> str:
    if top <= 0:
        return BLOCKS[0]
    k = -(-len(BLOCKS) * value // top) - 1  # rounded up, so that only zero and what is next to it are lowest
    return BLOCKS[min(len(BLOCKS) - 1, max(0, int(k)))]


def line_of(runs: Sequence[Entry]) -> str:
    """The last runs of one configuration in one line: from which to which, how they went, the last step."""
    shown = runs[-SHOWN:]
    times = [run.step_ns for run in shown]
    return (
        f"{sparkline(times)}  runs {shown[0].number} to {shown[-1].number}, "
        f"{duration(min(filter(None, times)))} to {duration(max(filter(None, times)))}, "
        f"last {duration(times[-1])}"
    )


def words_of(run: Entry) -> str:
    """A run in one line, as the chart shows it over a dot."""
    parts = [f"run {run.number}", run.at[:16].replace("T", " "), duration(run.step_ns)]
    if run.busy_share is not None:
        parts.append(f"busy {percent(run.busy_share)}")
    if run.usd_per_1000_steps is not None:
        parts.append(f"{dollars(run.usd_per_1000_steps)} for 1,000 steps")
    if run.commit:
        parts.append(f"commit {run.commit[:9]}")
    return ", ".join(parts)


def in_change(run: Entry, found: Sequence[Change]) -> bool:
    """Whether a run is one of those that left the band."""
    return any((c.since.number or 0) <= (run.number or 0) <= (c.until.number or 0) for c in found)
