"""The simulated GPU: a PyTorch device in Python that computes on the CPU and accounts like a card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpututor.simgpu.register import register

if TYPE_CHECKING:
    from gpututor.cards import Machine
    from gpututor.simgpu.session import Session

__all__ = ["register", "simulated_gpu"]


def simulated_gpu(
    machine: str | Machine | None = None, *, numerics: bool = True, what: str = "", keep_tape: bool = True
) -> Session:
    """A simulated machine to be used in a `with` block; inside it `device="simgpu"` is that machine's GPU.

    `machine` names a machine ("p3.2xlarge") or a card ("H100-SXM"); by default it is the one V100 of
    AWS p3.2xlarge. With `numerics=False` nothing is computed, only accounted.

    Raises:
        MachineNotKnown: neither a machine nor a card has this name; near names are given.
        SessionRunning: on entering, when another one is at work in this process.
    """
    from gpututor.lookup import machine_named

    register()
    from gpututor.simgpu.session import Session

    return Session(machine_named(machine), numerics=numerics, what=what, keep_tape=keep_tape)
