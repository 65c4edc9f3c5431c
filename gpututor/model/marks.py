"""What a tape notes beside the work itself: stretches that are no training, and a switch that makes launches wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpututor.model.priced import PricedOp

LAUNCH_BLOCKING = "CUDA_LAUNCH_BLOCKING"


@dataclass(frozen=True, slots=True)
class BeginPause:
    """From here on the program does something that is no training: an evaluation, a checkpoint, logging."""

    name: str


@dataclass(frozen=True, slots=True)
class EndPause:
    """The innermost pause ends here."""


@dataclass(frozen=True, slots=True)
class LaunchBlocking:
    """From here on each launch returns only when its kernel is done, as CUDA_LAUNCH_BLOCKING=1 makes it.

    Source: NVIDIA, "CUDA C++ Programming Guide", asynchronous concurrent execution: the variable makes all kernel
    launches synchronous. After each the host needs what any wait needs, the `sync` of data/hosts.toml.
    """

    on: bool = True


MarkEntry = BeginPause | EndPause | LaunchBlocking


def one_by_one(op: PricedOp) -> Iterator[PricedOp]:
    """The op cut into pieces of one kernel each, the host's time shared out among them and none of it lost.

    >>> from gpututor.timeline import KernelWork
    >>> two = tuple((name, 10, KernelWork()) for name in "ab")
    >>> pieces = list(one_by_one(PricedOp("mul", 0, 5, 7, 2, two)))
    >>> [(p.python_ns, p.dispatch_ns, len(p.kernels)) for p in pieces]
    [(5, 4, 1), (0, 3, 1)]
    """
    n = len(op.kernels)
    if n < 2:
        yield op
        return
    part, rest = divmod(op.dispatch_ns, n)
    for k, kernel in enumerate(op.kernels):
        python_ns, more = (op.python_ns, rest) if k == 0 else (0, 0)
        yield PricedOp(op.name, op.host_lane, python_ns, part + more, op.launch_ns, (kernel,))
