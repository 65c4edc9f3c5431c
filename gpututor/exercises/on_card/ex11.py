"""Exercise 11.2 in the learner's process: steps with a scaled gradient in halves, on a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex11_data import FIRST_SCALE, RATE
from gpututor.lab.on_card import laid, recorded


def run(train_step: Callable[..., Any], machine: str, rows: Any, *, card_fd: int | None = None) -> dict[str, Any]:
    """What the steps launched, the weights after them, and the scale that the last one gave."""
    import torch

    def make() -> Callable[[], Any]:
        steps = laid(rows)
        weights = torch.zeros(steps[0].shape[0], device="simgpu")

        def work() -> dict[str, Any]:
            scale: Any = FIRST_SCALE
            for true in steps:

                def gradient_of(by: Any, true: Any = true) -> Any:
                    return (true * by).half()

                scale = train_step(weights, gradient_of, scale, RATE)
            return {"weights": weights, "scale": scale}

        return work

    return recorded(machine, make, card_fd=card_fd)
