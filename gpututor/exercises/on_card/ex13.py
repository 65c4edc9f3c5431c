"""Exercise 13.2 in the learner's process: two convolutions with fewer channels between them, on a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.lab.on_card import laid, recorded


def run(
    smaller: Callable[..., Any], machine: str, given: Any, n_kept: int, *, card_fd: int | None = None
) -> dict[str, Any]:
    """What was launched, and what the two convolutions give with the weights that `smaller` gave."""
    import torch
    from torch.nn import functional

    def make() -> Callable[[], Any]:
        pictures, first, second = laid(given)

        def work() -> Any:
            with torch.no_grad():
                one, two = smaller(first, second, n_kept)
                between = functional.conv2d(pictures, one, padding=1).relu()
                return functional.conv2d(between, two, padding=1).flatten()

        return work

    return recorded(machine, make, card_fd=card_fd)
