"""A job that somebody runs every night: a small network learns to tell drawn shapes apart, an epoch at a time.

It is written as such jobs often are: the loss is read at each step before the update, and Adam goes through the
parameters tensor by tensor. So a step has a part in which the card sets the pace, and one in which the host does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor
from torch.utils.data import Dataset

from gpututor.jobs.rules import Rule, Way
from gpututor.jobs.shapes import SmallNet, draw
from gpututor.jobs.updates import optimizer

SIDE, WIDTH = 32, 16
N_PICTURES, N_HELD_OUT = 4096, 512
BATCH = 256
RATE = 0.008  # the best of three for two dozen steps, with either batch


class Nightly:
    """The job on one device with pictures from the host, `batch` a step.

    With `reads` the mean of each parameter's gradient is read too, as for a histogram. Sets torch's global seed.
    """

    def __init__(self, device: torch.device, batch: int = BATCH, *, reads: bool = False) -> None:
        torch.manual_seed(0)
        self.net = SmallNet(WIDTH).to(device)
        self.optimizer = optimizer(Rule.ADAM, Way.LOOP, self.net.parameters(), RATE)
        self._device, self._batch, self._reads = device, batch, reads
        self._pictures, self._kinds = _shapes(N_PICTURES, 0)

    def __call__(self, k: int) -> Tensor:
        """Train on the k-th batch; its mean loss."""
        at = k * self._batch % N_PICTURES
        chosen = slice(at, at + self._batch)
        pictures, kinds = self._pictures[chosen].to(self._device), self._kinds[chosen].to(self._device)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(pictures), kinds)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        loss.item()
        if self._reads:
            for parameter in self.net.parameters():
                assert parameter.grad is not None
                parameter.grad.abs().mean().item()
        self.optimizer.step()
        return loss.detach()

    def held_out(self) -> float:
        """The loss on pictures that it never saw."""
        pictures, kinds = _shapes(N_HELD_OUT, 1)
        with torch.no_grad():
            return float(F.cross_entropy(self.net(pictures.to(self._device)), kinds.to(self._device)))


class Drawn(Dataset[Any]):
    """Pictures that are drawn when they are asked for, each the first of `n_tries`: work for a loader's processes."""

    def __init__(self, n: int = 10**6, n_tries: int = 16) -> None:
        self._n, self._n_tries = n, n_tries

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, k: int) -> tuple[Tensor, Tensor]:
        pictures, kinds = draw(self._n_tries, k, SIDE)
        return pictures[0], kinds[0]


@lru_cache(maxsize=2)
def _shapes(n: int, seed: int) -> tuple[Tensor, Tensor]:
    return draw(n, seed, SIDE)
