"""How long the host is busy with operators that do the same with and without a GPU, in a profiler's records.

They only choose what to call next, change a shape, or keep autograd's books; and between them runs Python. The same
names are read from a recorded server's trace (tools/calibrate/host_operators.py, into data/host_operators.toml) and
from this machine's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from types import MappingProxyType

from gpututor.expect.accuracy import COVERED
from gpututor.paths import data_dir
from gpututor.tables import named, read_table
from gpututor.trace.categories import Role
from gpututor.trace.host import HostEvent, HostEvents

ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
RELU, ADD, CONV = (f"autograd::engine::evaluate_function: {name}Backward0" for name in ("Relu", "Add", "Convolution"))

# What is compared. Pairs are the time between two operators of one thread: Python, or autograd's engine.
BETWEEN: tuple[tuple[str, str], ...] = (
    ("aten::conv2d", "aten::add_"),
    ("aten::add_", "aten::batch_norm"),
    ("aten::batch_norm", "aten::relu_"),
    ("aten::relu_", "aten::conv2d"),
    ("aten::batch_norm", "aten::add_"),
    (ACCUMULATE, ACCUMULATE),
    (ACCUMULATE, CONV),
    (ACCUMULATE, RELU),
    (RELU, ADD),
)
# Their own time, without that of what they call. What allocates, computes or may switch streams isn't among them.
WITHIN: tuple[str, ...] = (
    "aten::conv2d",
    "aten::convolution",
    "aten::batch_norm",
    "aten::_batch_norm_impl_index",
    "aten::t",
    "aten::transpose",
    "aten::detach",
    "torch::autograd::AccumulateGrad",
    "ReluBackward0",
    "AddBackward0",
    "ConvolutionBackward0",
)
NAMES: frozenset[str] = frozenset(WITHIN) | {f"{a} → {b}" for a, b in BETWEEN}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One amount on the recorded server: its middle time, and how often a step has it."""

    median_us: float
    n_per_step: float

    @property
    def weight_us(self) -> float:
        """Time that it takes in a step."""
        return self.median_us * self.n_per_step


@dataclass(frozen=True, slots=True)
class Server:
    """The server whose trace is compared with, and its `times` in the sense of data/hosts.toml, the profiler on."""

    operators: Mapping[str, Recorded]
    times: float
    source: str


@cache
def recorded_server() -> Server:
    """The server of data/host_operators.toml.

    Raises:
        DataFileError: the table is damaged.
    """
    table = read_table(data_dir() / "host_operators.toml")
    found = {name: Recorded(e.number("median_us"), e.number("n_per_step")) for name, e in named(table, "operator")}
    server = table.inner("server")
    return Server(MappingProxyType(found), server.number("times"), server.text("source"))


def amounts_ns(host: HostEvents) -> dict[str, list[int]]:
    """Every time of each amount that is compared, by its name, from a profiler's records."""
    found: dict[str, list[int]] = {}
    for thread in host.by_thread(Role.OPERATOR, Role.CALL):
        for name, long_ns in [*_within(thread), *_between(thread)]:
            if name in NAMES:
                found.setdefault(name, []).append(long_ns)
    return found


def _within(thread: Sequence[HostEvent]) -> list[tuple[str, int]]:
    """Each event's name and its own time; events in order of their start, outer ones first."""
    own_ns = [e.end_ns - e.start_ns for e in thread]
    around: list[int] = []
    for k, event in enumerate(thread):
        while around and thread[around[-1]].end_ns <= event.start_ns:
            around.pop()
        if around:
            own_ns[around[-1]] -= event.end_ns - event.start_ns
        around.append(k)
    return [(e.told.name, ns) for e, ns in zip(thread, own_ns, strict=True) if ns > 0]


def _between(thread: Sequence[HostEvent]) -> list[tuple[str, int]]:
    """The time between each operator that nothing surrounds and the next one; none where a driver's call lies there."""
    found: list[tuple[str, int]] = []
    last: HostEvent | None = None
    end_ns = 0
    for event in thread:
        if event.start_ns < end_ns:
            end_ns = max(end_ns, event.end_ns)
            continue
        both_operators = last is not None and last.told.role is event.told.role is Role.OPERATOR
        if last is not None and both_operators and event.start_ns > end_ns:
            found.append((f"{last.told.name} → {event.told.name}", event.start_ns - end_ns))
        last, end_ns = event, event.end_ns
    return found


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long operators take here as on the recorded server.

    `times` is their mean, each weighted by its time in a recorded step, over logarithms. `spread_share` is so that four
    fifths of that time lie within 1 + `spread_share` of it either way, `mean_error_share` the same for the mean.
    """

    times: float
    spread_share: float
    mean_error_share: float
    n_operators: int


def ratio_of(own_us: Mapping[str, float], server: Server) -> Ratio | None:
    """The ratio of this machine's middle times to the server's; None without an operator that both have.

    A step is made of many operators, so a mean is less far off than one of them: by the root of how many there would
    be if all weighed the same, (sum of weights)² over the sum of their squares.

    Source: Kish 1965, the effective sample size.
    """
    pairs = [
        (math.log(own_us[name] / one.median_us), one.weight_us)
        for name, one in server.operators.items()
        if name in own_us
    ]
    if not pairs:
        return None
    total = sum(weight for _, weight in pairs)
    middle = sum(log * weight for log, weight in pairs) / total
    spread = weighted_quantile([(abs(log - middle), weight) for log, weight in pairs], COVERED)
    n_alike = total**2 / sum(weight**2 for _, weight in pairs)
    return Ratio(math.exp(middle), math.expm1(spread), math.expm1(spread / math.sqrt(n_alike)), len(pairs))


def weighted_quantile(pairs: Iterable[tuple[float, float]], share: float) -> float:
    """The value up to which `share` of all weight lies; pairs are (value, weight).

    >>> weighted_quantile([(1.0, 1.0), (2.0, 2.0), (9.0, 1.0)], 0.5)
    2.0
    """
    ordered = sorted(pairs)
    wanted, seen = share * sum(weight for _, weight in ordered), 0.0
    for value, weight in ordered:
        seen += weight
        if seen >= wanted:
            return value
    return ordered[-1][0]


def medians_us(amounts: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """The middle time of each amount in microseconds."""
    return {name: median(times) / 1e3 for name, times in amounts.items()}
