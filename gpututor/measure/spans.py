"""Split steps as a timeline of coarse spans.

On the GPU's lane forward, backward and optimizer are one kernel each, from end to end, and a copy is a copy. On the
host's lane each part is what the host did then. The rest of a step has no span on either: no mark says what it is. So
an input wait or a pause in which the GPU had nothing queued is charged to it, and one under queued work is free.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gpututor.measure.parts import Part, SplitStep
from gpututor.timeline import Activity, Lane, LaneKind, Span, Step, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpututor.measure.measurement import Measurement

HOST, GPU = 0, 1
ON_GPU = {
    Part.COPY: Activity.COPY_TO_GPU,
    Part.FORWARD: Activity.KERNEL,
    Part.BACKWARD: Activity.KERNEL,
    Part.OPTIMIZER: Activity.KERNEL,
}
ON_HOST = {
    Part.INPUT: Activity.INPUT,
    Part.COPY: Activity.COPY_CALL,
    Part.FORWARD: Activity.DISPATCH,
    Part.BACKWARD: Activity.DISPATCH,
    Part.OPTIMIZER: Activity.DISPATCH,
    Part.PAUSE: Activity.PAUSE,
}
COARSE = (
    "marks stand at the borders of parts, so gaps between kernels inside forward, backward and optimizer aren't seen: "
    "they count as busy"
)


def timeline_of(found: Measurement) -> Timeline:
    """The timeline of all kept steps; its origin is that of the host's clock, its window ends when the GPU is done."""
    steps = found.steps
    spans = [span for step in steps for span in _spans(step)]
    first_ns = min(steps[0].host_ns[0], steps[0].gpu_ns[0])
    last_ns = max(steps[-1].host_ns[-1], steps[-1].gpu_ns[-1])
    spans += [Span(HOST, Activity.PAUSE, "between two loops", a, b) for a, b in found.pauses if first_ns <= a < b]
    lanes = (Lane(LaneKind.HOST, "main"), Lane(LaneKind.STREAM, "GPU" if found.label.card else "CPU"))
    marked = tuple(_step(step, found.n_samples) for step in steps)
    return Timeline(lanes, tuple(spans), (first_ns, max(last_ns, first_ns + 1)), found.label, marked, (COARSE,))


def _step(step: SplitStep, n_samples: int | None) -> Step:
    return Step(step.host_ns[0], step.host_ns[-1], n_samples)


def _spans(step: SplitStep) -> Iterator[Span]:
    for edges, lane, activities in ((step.host_ns, HOST, ON_HOST), (step.gpu_ns, GPU, ON_GPU)):
        for part, (a, b) in zip(step.parts, pairwise(edges), strict=True):
            if part in activities and b > a:
                yield Span(lane, activities[part], part.value, a, b)
