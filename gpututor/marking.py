"""`gpututor.step()`: where a training loop says itself that a step is over."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[int | None], None]] = []


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
