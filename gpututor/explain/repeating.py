"""Steps in a trace whose program marked none: by the optimizer's own marks, or by kernels that come again in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from gpututor.timeline import COMPUTING, Activity, Span, Step, Timeline
from gpututor.trace.categories import OPTIMIZER

LEAST_STEPS = 3
ALIKE_SHARE = 0.9
"""Our choice: of the kernels of one turn, so many must come again at the same place of the next."""

MOST_CANDIDATES = 8


def with_steps(timeline: Timeline, device: int | None) -> tuple[Timeline, str]:
    """The timeline with steps, looked at from the first to the last of them, and one phrase on how they were found."""
    if timeline.steps:
        return timeline, "marked in the program"
    steps = _by_optimizer(timeline)
    how = "each ends with its optimizer's step"
    if not steps:
        steps, how = _by_kernels(timeline, device), "found by kernels that come again in the same order"
    if not steps:
        return timeline, "none: nothing marks them, and no order of kernels comes again"
    return timeline.through(steps[0].start_ns, steps[-1].end_ns, steps), how


def _by_optimizer(timeline: Timeline) -> list[Step]:
    """From the end of one optimizer's step to the end of the next."""
    calls = list(timeline.on(Activity.DISPATCH))
    names = {name for name in {s.name for s in calls} if name.startswith(OPTIMIZER)}
    ends = sorted([s.end_ns for s in calls if s.name in names]) if names else []
    return [Step(a, b) for a, b in pairwise(ends) if b > a] if len(ends) > LEAST_STEPS else []


def _by_kernels(timeline: Timeline, device: int | None) -> list[Step]:
    """From the launch of one turn's first kernel to that of the next turn's."""
    kernels = sorted(
        (
            s
            for s in timeline.spans
            if s.activity in COMPUTING and (device is None or timeline.lanes[s.lane].device in (None, device))
        ),
        key=lambda s: (s.start_ns, s.lane),
    )
    found = turn_of([k.name for k in kernels])
    if found is None:
        return []
    first, length = found
    begins = [_launched_ns(timeline, kernels[k]) for k in range(first, len(kernels), length)]
    steps = [Step(a, b) for a, b in pairwise(begins) if b > a]
    return steps if len(steps) >= LEAST_STEPS else []


def turn_of(names: Sequence[str]) -> tuple[int, int] | None:
    """Where the first turn begins and how many names one has, in a sequence that comes again at least three times.

    >>> turn_of(["warm"] + ["a", "b", "b", "c"] * 4)
    (1, 4)
    >>> turn_of(["a", "b", "c"]) is None
    True
    """
    counts = Counter(names)
    rare = sorted((n, name) for name, n in counts.items() if n > LEAST_STEPS)
    places: dict[str, list[int]] = {name: [] for _, name in rare[:MOST_CANDIDATES]}
    for k, name in enumerate(names):
        if name in places:
            places[name].append(k)
    gaps = Counter(b - a for where in places.values() for a, b in pairwise(where))
    for length, _ in sorted(gaps.items(), key=lambda item: (-item[1], -item[0]))[:MOST_CANDIDATES]:
        same = [a == b for a, b in zip(names, names[length:], strict=False)]
        if len(names) >= LEAST_STEPS * length and sum(same) >= ALIKE_SHARE * len(same):
            first = next(k for k in range(len(same)) if all(same[k : k + max(1, length // 4)]))
            return (first, length) if (len(names) - first) // length >= LEAST_STEPS else None
    return None


def _launched_ns(timeline: Timeline, kernel: Span) -> int:
    if kernel.launch is None:
        return kernel.start_ns
    calls = (s.start_ns for s in timeline.spans if s.launch == kernel.launch and s.activity is Activity.LAUNCH)
    return min(calls, default=kernel.start_ns)
