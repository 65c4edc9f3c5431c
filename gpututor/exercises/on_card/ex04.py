"""Exercise 4.2 in the learner's process: an LSTM's states for sequences of several lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.lab.on_card import laid, recorded


def run(function: Callable[..., Any], machine: str, inputs: Any, *, card_fd: int | None = None) -> dict[str, Any]:
    """What `function` launches and gives for words, both weights and bias."""

    def make() -> Callable[[], Any]:
        import torch

        given = laid(inputs)

        def work() -> Any:
            with torch.no_grad():
                return function(*given)

        return work

    return recorded(machine, make, card_fd=card_fd)
