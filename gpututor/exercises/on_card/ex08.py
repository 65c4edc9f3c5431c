"""Exercise 8.2 in the learner's process: batches in pinned memory, weights to learn, and the loop's launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex08_data import RATE, pictures_of
from gpututor.lab.on_card import laid, recorded


def run(
    function: Callable[..., Any],
    machine: str,
    pictures: tuple[int, int, int, int],
    weights: Any,
    *,
    card_fd: int | None = None,
) -> dict[str, Any]:
    """What `function(batches, learn)` launched on the machine's card, and the losses that it gave.

    `pictures` are the arguments of `pictures_of`, and `weights` lie on the card.
    """
    import torch

    from gpututor.simgpu import as_cuda

    def make() -> Callable[[], Any]:
        _, batch, side, _ = pictures
        batches = [torch.from_numpy(each).pin_memory() for each in pictures_of(*pictures)]
        learn = learner(laid(weights)[0], (batch, 3, side, side))

        def work() -> Any:
            with as_cuda():
                return function(batches, learn)

        return work

    return recorded(machine, make, card_fd=card_fd)


def learner(weights: Any, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """`learn(x)`: one step of gradient descent towards small scores; gives the loss, left on the card.

    It takes fp32 of this shape on the card and refuses anything else in one sentence.
    """
    import torch

    def learn(x: Any) -> Any:
        if tuple(x.shape) != shape or x.dtype != torch.float32 or x.device.type == "cpu":
            got = f"{x.dtype} of shape {tuple(x.shape)} on {x.device.type}"
            raise TypeError(f"learn takes float32 of shape {shape} on the card, and got {got}")
        flat = x.flatten(1)
        scores = flat @ weights
        loss = scores.square().mean()
        weights.sub_(flat.t() @ scores, alpha=2 * RATE / scores.numel())
        return loss

    return learn
