"""Exercise 10.2 in the learner's process: a training loop around a step, on a simulated card under CUDA's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex10_data import N_INPUTS, RATE, rows_of_data
from gpututor.lab.on_card import recorded


def run(train: Callable[..., Any], machine: str = "p3.2xlarge", *, card_fd: int | None = None) -> dict[str, Any]:
    """What the loop launched, and the model's weights after it."""
    import torch

    from gpututor.simgpu import as_cuda

    def make() -> Callable[[], Any]:
        xs, ys = rows_of_data()
        model = torch.nn.Linear(N_INPUTS, 1, bias=False, device="simgpu")
        with torch.no_grad():
            model.weight.zero_()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        batches = [
            (
                torch.tensor(x, dtype=torch.float32).to("simgpu"),
                torch.tensor(y, dtype=torch.float32).view(-1, 1).to("simgpu"),
            )
            for x, y in zip(xs, ys, strict=True)
        ]

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            error = model(x) - y
            loss = (error * error).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        def work() -> dict[str, Any]:
            with as_cuda():
                train(step, batches)
            return {"weights": model.weight.detach().view(-1)}

        return work

    return recorded(machine, make, card_fd=card_fd)
