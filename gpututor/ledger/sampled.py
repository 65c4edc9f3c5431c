"""GPU-Util as nvidia-smi prints it: the driver looks back over a sample period and says how much of it had a kernel.

One sample covers between 1/6 s and 1 s, by card. A training step is often shorter, so a timeline of a few steps stands
for a run in which they repeat; the samples of such a run scatter around the share of the whole.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, pairwise

from gpututor.errors import LedgerError
from gpututor.ledger.device import SHOWN_BY_NVIDIA_SMI, spans_of
from gpututor.timeline import NS_PER_S, Timeline

# Source: NVML, `nvmlUtilization_t`: "between 1 second and 1/6 second, depending on the product".
SHORTEST_PERIOD_S, LONGEST_PERIOD_S = 1 / 6, 1.0


def gpu_util_samples(
    timeline: Timeline, *, period_s: float = SHORTEST_PERIOD_S, n_samples: int = 10, device: int | None = None
) -> tuple[int, ...]:
    """The whole percents of `n_samples` periods in a row, the timeline's window repeated as often as that takes.

    Kernels count, memsets and collectives too; copies don't.

    Raises:
        LedgerError: no sample or no length of a period is asked for.
        TimelineError: several GPUs and none chosen.
    """
    if n_samples < 1 or period_s <= 0:
        raise LedgerError(
            f"{n_samples} samples of {period_s:g} s were asked for; it takes at least one, longer than zero"
        )
    lo, hi = timeline.window_ns
    busy = _busy_before(timeline, device)
    length_ns, period_ns = hi - lo, round(period_s * NS_PER_S)

    def until(at_ns: int) -> int:
        whole, rest = divmod(at_ns, length_ns)
        return whole * busy.total_ns + busy.until(rest)

    edges = [until(k * period_ns) for k in range(n_samples + 1)]
    return tuple(round(100 * (b - a) / period_ns) for a, b in pairwise(edges))


class _Busy:
    """Time with a kernel from the window's start up to any instant of it."""

    def __init__(self, pieces: list[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in pieces]
        self._ends = [end for _, end in pieces]
        self._before = [0, *accumulate(end - start for start, end in pieces)]
        self.total_ns = self._before[-1]

    def until(self, at_ns: int) -> int:
        n_begun = bisect_left(self._starts, at_ns)
        return self._before[n_begun] - (max(0, self._ends[n_begun - 1] - at_ns) if n_begun else 0)


def _busy_before(timeline: Timeline, device: int | None) -> _Busy:
    lo, hi = timeline.window_ns
    pieces: list[tuple[int, int]] = []
    counted = (s for s in spans_of(timeline, device) if s.activity in SHOWN_BY_NVIDIA_SMI)
    for start, end in sorted((max(s.start_ns, lo) - lo, min(s.end_ns, hi) - lo) for s in counted):
        if end <= start:
            continue
        if pieces and start <= pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], max(pieces[-1][1], end))
        else:
            pieces.append((start, end))
    return _Busy(pieces)
