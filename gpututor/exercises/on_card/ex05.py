"""Exercise 5.2 in the learner's process: several products with one input, made ready first and then called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.lab.on_card import recorded


def run(
    make_gates: Callable[..., Any],
    machine: str,
    weights: list[list[Any]],
    inputs: list[Any],
    *,
    card_fd: int | None = None,
) -> dict[str, Any]:
    """What the function that `make_gates` gives launches and gives for one input and one state.

    `weights` are two lists of square matrices, those of the input and those of the state. What `make_gates` itself
    does is not counted.
    """

    def make() -> Callable[[], Any]:
        import torch

        w_in, w_rec = (
            [torch.tensor(matrix, dtype=torch.float32, device="simgpu") for matrix in matrices] for matrices in weights
        )
        word, state = (torch.tensor(values, dtype=torch.float32, device="simgpu") for values in inputs)
        with torch.no_grad():
            gates = make_gates(w_in, w_rec)

        def work() -> Any:
            with torch.no_grad():
                return gates(word, state)

        return work

    return recorded(machine, make, card_fd=card_fd)
