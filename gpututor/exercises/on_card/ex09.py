"""Exercise 9.2 in the learner's process: a training loop that writes a log, on a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex09_data import N_INPUTS, N_KINDS, RATE, TENSORS, rows_of_data
from gpututor.lab.on_card import recorded


def run(train: Callable[..., Any], machine: str = "p3.2xlarge", *, card_fd: int | None = None) -> dict[str, Any]:
    """What the loop launched, its log ("tensors" where its numbers were left on the card) and the model's weights."""
    import torch

    from gpututor.jobs.habits import Bar

    def make() -> Callable[[], Any]:
        xs, ys = rows_of_data()
        model = torch.nn.Linear(N_INPUTS, N_KINDS, bias=False, device="simgpu")
        with torch.no_grad():
            model.weight.zero_()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        batches = [
            (torch.tensor(x, dtype=torch.float32).to("simgpu"), torch.tensor(y).to("simgpu"))
            for x, y in zip(xs, ys, strict=True)
        ]

        def work() -> dict[str, Any]:
            log = train(model, optimizer, batches, Bar(hidden=True))
            on_card = isinstance(log, list) and any(isinstance(each, torch.Tensor) for each in log)
            return {"log": TENSORS if on_card else log, "weights": model.weight.detach()}

        return work

    return recorded(machine, make, card_fd=card_fd)
