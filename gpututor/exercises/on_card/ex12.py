"""Exercise 12.2 in the learner's process: updates of many small tensors, on a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex12_data import MOMENTUM, N_TENSORS, N_UPDATES, RATE, numbers, sizes
from gpututor.lab.on_card import recorded


def run(
    update: Callable[..., Any],
    machine: str = "p3.2xlarge",
    n_tensors: int = N_TENSORS,
    seed: int = 12,
    *,
    card_fd: int | None = None,
) -> dict[str, Any]:
    """What the updates launched, and parameters and moving means after them, each as one list."""
    import torch

    def make() -> Callable[[], Any]:
        each = sizes(n_tensors)
        start, steps = numbers(n_tensors, seed)

        def cut(values: Any) -> list[torch.Tensor]:
            parts = torch.split(torch.tensor(values, dtype=torch.float32), each)
            return [part.clone().to("simgpu") for part in parts]

        parameters, means = cut(start), [torch.zeros(n, device="simgpu") for n in each]
        gradients = [cut(step) for step in steps]

        def work() -> dict[str, Any]:
            with torch.no_grad():
                for k in range(N_UPDATES):
                    update(parameters, gradients[k], means, RATE, MOMENTUM)
            return {"parameters": list(parameters), "means": list(means)}

        return work

    return recorded(machine, make, card_fd=card_fd)
