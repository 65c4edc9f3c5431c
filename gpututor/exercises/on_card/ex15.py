"""Exercise 15.2: a validation of a small network in the middle of its training, on a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex15_data import DROPPED, N_HIDDEN, N_KINDS, N_NUMBERS
from gpututor.lab.on_card import laid, recorded


def run(evaluate: Callable[..., Any], machine: str, rows: Any, *, card_fd: int | None = None) -> dict[str, Any]:
    """What the validation launched, the loss that it gave, and whether the network is ready to go on training."""
    import torch
    from torch import nn

    def make() -> Callable[[], Any]:
        w_1, b_1, w_2, b_2, inputs, kinds = laid(rows)
        first = nn.Linear(N_NUMBERS, N_HIDDEN, device="simgpu")
        second = nn.Linear(N_HIDDEN, N_KINDS, device="simgpu")
        with torch.no_grad():
            for target, source in ((first.weight, w_1), (first.bias, b_1), (second.weight, w_2), (second.bias, b_2)):
                target.copy_(source)
        model = nn.Sequential(first, nn.ReLU(), nn.Dropout(DROPPED), second)

        def work() -> dict[str, Any]:
            loss = evaluate(model, inputs, kinds)
            return {"loss": loss, "trains": all(part.training for part in model.modules())}

        return work

    return recorded(machine, make, card_fd=card_fd)
