"""The parts of a training step, and one step as it was split: on the GPU's clock and on the host's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise


class Part(Enum):
    """What a stretch of a step is for; the value is the word shown to a reader."""

    INPUT = "input wait"
    COPY = "copy"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    PAUSE = "pause"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class SplitStep:
    """One step cut at its marks: `parts[k]` lies between edges k and k + 1, on both clocks.

    `gpu_ns` are the instants at which the GPU reached each mark, `host_ns` those at which the host set it. Both count
    from the same origin, in nanoseconds. A part that the GPU reaches late costs it nothing of its own: an input wait
    under work that was still queued has no length on the GPU's clock.
    """

    parts: tuple[Part, ...]
    gpu_ns: tuple[int, ...]
    host_ns: tuple[int, ...]

    @property
    def duration_ns(self) -> int:
        """Nanoseconds from the first mark to the last one, on the GPU's clock."""
        return self.gpu_ns[-1] - self.gpu_ns[0]

    @property
    def lead_ns(self) -> int:
        """How far the host was ahead of the GPU at most, at any mark of the step; 0 where the GPU never had a queue."""
        return max(0, *(gpu - host for gpu, host in zip(self.gpu_ns, self.host_ns, strict=True)))

    def on_gpu_ns(self, part: Part) -> int:
        """Nanoseconds of this part on the GPU's clock."""
        return _sum(self.parts, self.gpu_ns, part)

    def on_host_ns(self, part: Part) -> int:
        """Nanoseconds of this part on the host's clock."""
        return _sum(self.parts, self.host_ns, part)


def _sum(parts: tuple[Part, ...], edges: tuple[int, ...], part: Part) -> int:
    return sum(b - a for each, (a, b) in zip(parts, pairwise(edges), strict=True) if each is part)
