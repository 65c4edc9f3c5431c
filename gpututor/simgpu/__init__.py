"""The simulated GPU: a PyTorch device in Python that computes on the CPU and accounts like a card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpututor.errors import ClockNotKnown
from gpututor.model.tape import CLOCKS
from gpututor.simgpu.register import register

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from gpututor.cards import Machine
    from gpututor.simgpu.session import Session

__all__ = ["as_cuda", "register", "simulated_gpu"]


def simulated_gpu(
    machine: str | Machine | None = None,
    *,
    numerics: bool = True,
    what: str = "",
    keep_tape: bool = True,
    clock: str = "virtual",
) -> Session:
    """A simulated machine to be used in a `with` block; inside it `device="simgpu"` is that machine's GPU.

    `machine` names a machine ("p3.2xlarge") or a card ("H100-SXM"); by default it is the one V100 of
    AWS p3.2xlarge. With `numerics=False` nothing is computed, only accounted. With `clock="paced"` the host's time
    is real, this computer's own, and waiting for the card really takes as long as on that machine.

    Raises:
        ClockNotKnown: the clock is neither "virtual" nor "paced".
        MachineNotKnown: neither a machine nor a card has this name; near names are given.
        SessionRunning: on entering, when another one is at work in this process.
    """
    from gpututor.lookup import machine_named

    register()
    from gpututor.simgpu.session import Session

    if clock not in CLOCKS:
        raise ClockNotKnown("clock", clock, CLOCKS)
    return Session(machine_named(machine), numerics=numerics, what=what, keep_tape=keep_tape, clock=clock)


def as_cuda() -> AbstractContextManager[None]:
    """A `with` block in which "cuda" means the simulated GPU, for code written for CUDA; afterwards all is as before.

    It belongs inside the block of `simulated_gpu(…)`.
    """
    register()
    from gpututor.simgpu.cuda import names as cuda_names

    return cuda_names.as_cuda()
