"""`gpututor.step()` and `pause()`: where a training loop says that a step is over, or that it does no training."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Pausing = Callable[[str, bool], AbstractContextManager[None]]
_listeners: list[Callable[[int | None], None]] = []
_pausing: list[Pausing] = []


def step(n_samples: int | None = None) -> None:
    """Say that one training step is over; `n_samples` is what it worked through.

    Under `gpututor run` these marks replace those that are found without help. Anywhere else the call does nothing.
    """
    for listener in tuple(_listeners):
        listener(n_samples)


def listen(listener: Callable[[int | None], None]) -> None:
    """Call `listener` with the number of samples at every mark."""
    _listeners.append(listener)


def stop_listening(listener: Callable[[int | None], None]) -> None:
    """Call it no more."""
    _listeners.remove(listener)


def pause(name: str, *, host_only: bool = False) -> AbstractContextManager[None]:
    """A block that is no training: an evaluation, a checkpoint, logging.

    With `host_only` the device has no part in it, and the host really does all of it; the simulated GPU then takes
    the time that it takes here. Where nobody listens the block is only run.
    """
    return _pausing[-1](name, host_only) if _pausing else nullcontext()


def pause_with(pausing: Pausing) -> None:
    """Let `pausing(name, host_only)` make the context of every such block from now on."""
    _pausing[:] = [pausing]
