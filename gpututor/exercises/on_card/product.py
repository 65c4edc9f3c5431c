"""The smallest harness: a product of two square matrices with small whole numbers in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.lab.on_card import recorded


def run(work: Callable[..., Any], n: int, *, card_fd: int | None = None) -> dict[str, Any]:
    """What `work(a, b)` launches for two matrices of n by n, and what it gives."""
    import torch

    def make() -> Callable[[], Any]:
        rows, columns = torch.arange(n).view(-1, 1), torch.arange(n).view(1, -1)
        a, b = ((rows + columns) % 5).float().to("simgpu"), ((rows * columns) % 3).float().to("simgpu")
        return lambda: work(a, b)

    return recorded("p3.2xlarge", make, card_fd=card_fd)
