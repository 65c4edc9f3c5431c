"""Exercise 3.2: one training step of a linear model, on a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex03_data import N_INPUTS, RATE, rows_of_data
from gpututor.lab.on_card import recorded


def run(train_step: Callable[..., Any], *, card_fd: int | None = None) -> dict[str, Any]:
    """What the step launched, and the weights after it."""
    import torch

    def make() -> Callable[[], Any]:
        x, y = rows_of_data()
        model = torch.nn.Linear(N_INPUTS, 1, bias=False, device="simgpu")
        with torch.no_grad():
            model.weight.zero_()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        inputs, targets = torch.tensor(x).to("simgpu"), torch.tensor(y).view(-1, 1).to("simgpu")

        def work() -> dict[str, Any]:
            train_step(model, optimizer, inputs, targets)
            return {"weights": model.weight.detach().view(-1)}

        return work

    return recorded("p3.2xlarge", make, card_fd=card_fd)
