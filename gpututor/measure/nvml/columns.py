"""The values of one metric of one GPU: kept in arrays up to a bound, counted without one.

There is no entry where there was no value. Where a column is full, each two neighbours become one, so that a long run
is kept whole in half the detail; mean, extremes and ends are counted apart and never thinned.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import islice

from gpututor.measure.nvml.metrics import Metric, Thinned

ENTRY_BYTES = 16
"""An 8-byte time and an 8-byte value."""

FEWEST = 64
"""Our choice: entries of a column, however many there are; fewer make no curve."""

_MOST_MASKS = 64
"""Our choice: different sets of bits that are counted apart. Nine known reasons rarely come in more sets than this."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric over a whole run: all in its own unit, times in nanoseconds since sampling began."""

    n: int
    mean: float
    lowest: float
    highest: float
    first: float
    first_ns: int
    last: float
    last_ns: int


class Column:
    """Entries appended by the sampler's thread and read by any other."""

    __slots__ = ("_counts_bits", "_first", "_first_ns", "_highest", "_kept", "_last", "_last_ns", "_lowest", "_sum",
                 "masks", "metric", "most", "n")  # fmt: skip

    def __init__(self, metric: Metric, most: int) -> None:
        self.metric = metric
        self.most = max(FEWEST, most)
        self._counts_bits = metric.thinned is Thinned.EITHER_BIT
        self._kept = (array("q"), array("d"))
        self.n = 0
        self._sum = self._lowest = self._highest = self._first = self._last = 0.0
        self._first_ns = self._last_ns = 0
        self.masks: dict[int, int] = {}

    def append(self, at_ns: int, value: float) -> None:
        """Keep one value; the time is nanoseconds since sampling began."""
        if not self.n:
            self._first, self._first_ns, self._lowest, self._highest = value, at_ns, value, value
        elif value < self._lowest:
            self._lowest = value
        elif value > self._highest:
            self._highest = value
        self._sum += value
        self._last, self._last_ns = value, at_ns
        self.n += 1
        if self._counts_bits:
            mask = int(value)
            if mask in self.masks or len(self.masks) < _MOST_MASKS:
                self.masks[mask] = self.masks.get(mask, 0) + 1
        times, values = self._kept
        values.append(value)  # first the value, so that a reader who counts times finds one for each
        times.append(at_ns)
        if len(times) >= self.most:
            self._kept = _thinned(times, values, self.metric.thinned)

    def entries(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Times and values that are kept, oldest first."""
        times, values = self._kept
        n = len(times)
        return tuple(times[:n]), tuple(values[:n])

    @property
    def kept_bytes(self) -> int:
        """Memory of the kept entries."""
        return sum(part.buffer_info()[1] * part.itemsize for part in self._kept)

    def figure(self) -> Figure | None:
        """The whole run in a few numbers; None without a value."""
        if not self.n:
            return None
        mean = self._sum / self.n
        return Figure(self.n, mean, self._lowest, self._highest, self._first, self._first_ns, self._last, self._last_ns)


def _thinned(times: array[int], values: array[float], how: Thinned) -> tuple[array[int], array[float]]:
    """Each two neighbours as one, at the time of the later one; an odd one at the end stays."""
    pairs = zip(islice(values, 0, None, 2), islice(values, 1, None, 2), strict=False)
    merged: list[float]
    if how is Thinned.MEAN:
        merged = [(a + b) / 2 for a, b in pairs]
    elif how is Thinned.HIGHER:
        merged = [max(a, b) for a, b in pairs]
    elif how is Thinned.LATER:
        merged = [b for _, b in pairs]
    else:
        merged = [float(int(a) | int(b)) for a, b in pairs]
    odd = len(values) % 2
    new_times, new_values = array("q", times[1::2]), array("d", merged)
    if odd:
        new_times.append(times[-1])
        new_values.append(values[-1])
    return new_times, new_values
