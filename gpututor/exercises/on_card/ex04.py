"""Exercise 4.2 in the learner's process: an LSTM's states for sequences of several lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.lab.on_card import recorded


def run(
    function: Callable[..., Any], machine: str, inputs: list[list[Any]], *, card_fd: int | None = None
) -> dict[str, Any]:
    """What `function` launches and gives for inputs as nested lists: words, both weights, bias."""

    def make() -> Callable[[], Any]:
        import torch

        on_card = [torch.tensor(values, dtype=torch.float32, device="simgpu") for values in inputs]

        def work() -> Any:
            with torch.no_grad():
                return function(*on_card)

        return work

    return recorded(machine, make, card_fd=card_fd)
