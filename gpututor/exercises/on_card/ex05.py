"""Exercise 5.2 in the learner's process: several products with one input, made ready first and then called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.lab.on_card import laid, recorded


def run(make_gates: Callable[..., Any], machine: str, inputs: Any, *, card_fd: int | None = None) -> dict[str, Any]:
    """What the function that `make_gates` gives launches and gives for one input and one state.

    `make_gates` gets two lists of square matrices, those of the input and those of the state. What it does itself is
    not counted.
    """

    def make() -> Callable[[], Any]:
        import torch

        *matrices, word, state = laid(inputs)
        half = len(matrices) // 2
        with torch.no_grad():
            gates = make_gates(matrices[:half], matrices[half:])

        def work() -> Any:
            with torch.no_grad():
                return gates(word, state)

        return work

    return recorded(machine, make, card_fd=card_fd)
