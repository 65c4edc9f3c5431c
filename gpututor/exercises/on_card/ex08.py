"""Exercise 8.2 in the learner's process: batches in pinned memory, weights to learn, and the loop's launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpututor.lab.on_card import recorded

LEARNS = "learn begins"  # marks on the tape where the network gets a batch
WIDTH, RATE = 128, 1e-3


def run(
    function: Callable[..., Any],
    machine: str,
    n_batches: int,
    batch: int,
    side: int,
    seed: int,
    *,
    card_fd: int | None = None,
) -> dict[str, Any]:
    """What `function(batches, learn)` launched on the machine's card, and the losses that it gave."""
    import torch

    from gpututor.simgpu import as_cuda

    def make() -> Callable[[], Any]:
        pictures, weights = drawn(n_batches, batch, side, seed)
        batches = [torch.from_numpy(each).pin_memory() for each in pictures]
        learn = learner(torch.from_numpy(weights).to("simgpu"), (batch, 3, side, side))

        def work() -> Any:
            with as_cuda():
                return function(batches, learn)

        return work

    return recorded(machine, make, card_fd=card_fd)


def drawn(n_batches: int, batch: int, side: int, seed: int) -> tuple[list[Any], Any]:
    """Batches of bytes (batch, 3, side, side), and weights (numbers of a picture, `WIDTH`) in fp32, on the host."""
    dice = np.random.default_rng(seed)
    shape = (batch, 3, side, side)
    pictures = [dice.integers(0, 256, shape, dtype=np.uint8) for _ in range(n_batches)]
    return pictures, dice.standard_normal((3 * side * side, WIDTH), dtype=np.float32) / side


def learner(weights: Any, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """`learn(x)`: one step of gradient descent towards small scores; gives the loss, left on the card.

    It takes fp32 of this shape on the card and refuses anything else in one sentence.
    """
    import torch

    from gpututor.model.tape import HostWork
    from gpututor.simgpu.session import current
    from gpututor.timeline import Activity

    def learn(x: Any) -> Any:
        if tuple(x.shape) != shape or x.dtype != torch.float32 or x.device.type == "cpu":
            got = f"{x.dtype} of shape {tuple(x.shape)} on {x.device.type}"
            raise TypeError(f"learn takes float32 of shape {shape} on the card, and got {got}")
        current.session.account(HostWork(Activity.PYTHON, LEARNS, 0))
        flat = x.flatten(1)
        scores = flat @ weights
        loss = scores.square().mean()
        weights.sub_(flat.t() @ scores, alpha=2 * RATE / scores.numel())
        return loss

    return learn
