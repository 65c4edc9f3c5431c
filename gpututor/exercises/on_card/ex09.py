"""Exercise 9.2 in the learner's process: a training loop that writes a log, on a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex09_data import RATE, TENSORS
from gpututor.lab.on_card import laid, recorded


def run(
    train: Callable[..., Any], machine: str, n_kinds: int, rows: Any, *, card_fd: int | None = None
) -> dict[str, Any]:
    """What the loop launched, its log ("tensors" where its numbers were left on the card) and the model's weights."""
    import torch

    from gpututor.jobs.habits import Bar

    def make() -> Callable[[], Any]:
        given = laid(rows)
        model = torch.nn.Linear(given[0].shape[1], n_kinds, bias=False, device="simgpu")
        with torch.no_grad():
            model.weight.zero_()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        batches = list(zip(given[::2], given[1::2], strict=True))

        def work() -> dict[str, Any]:
            log = train(model, optimizer, batches, Bar(hidden=True))
            on_card = isinstance(log, list) and any(isinstance(each, torch.Tensor) for each in log)
            return {"log": TENSORS if on_card else log, "weights": model.weight.detach()}

        return work

    return recorded(machine, make, card_fd=card_fd)
