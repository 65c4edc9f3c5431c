"""Exercise 3.2: one training step of a linear model, on a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex03_data import RATE
from gpututor.lab.on_card import laid, recorded


def run(train_step: Callable[..., Any], machine: str, rows: Any, *, card_fd: int | None = None) -> dict[str, Any]:
    """What the step launched, and the weights after it."""
    import torch

    def make() -> Callable[[], Any]:
        inputs, targets = laid(rows)
        model = torch.nn.Linear(inputs.shape[1], 1, bias=False, device="simgpu")
        with torch.no_grad():
            model.weight.zero_()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

        def work() -> dict[str, Any]:
            train_step(model, optimizer, inputs, targets)
            return {"weights": model.weight.detach().view(-1)}

        return work

    return recorded(machine, make, card_fd=card_fd)
