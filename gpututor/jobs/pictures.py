"""Pictures to prepare for training: shapes in colour, a byte a value as a decoder gives them, and a network for them.

Preparing is the usual for photographs: a window of random size and place is cropped and scaled to the network's size,
every other one is mirrored, and bytes become numbers around zero. The windows are drawn beforehand, so whoever
prepares a batch, and where, makes the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from gpututor.jobs.shapes import KINDS, draw

STORED, SIDE = 112, 96  # pixels along a side as kept, and as the network sees them
SMALLEST, LARGEST = 0.5, 0.9  # a window's share of a side
MEAN, SPREAD = 0.5, 0.25  # of the bytes divided by 255, the same for each colour
LEARNING_RATE = 0.002  # our choice: AdamW learns the shapes within some dozens of steps


def coloured(n: int, side: int = STORED, seed: int = 0) -> tuple[Tensor, Tensor]:
    """`n` pictures (n, 3, side, side) of bytes, and the number of each one's kind (n,), on the CPU.

    >>> pictures, kinds = coloured(2, side=16)
    >>> tuple(pictures.shape), pictures.dtype
    ((2, 3, 16, 16), torch.uint8)
    """
    grey, kinds = draw(n, seed, side)
    tint = 0.5 + torch.rand(n, 3, 1, 1, generator=torch.Generator().manual_seed(seed + 1))
    return (255 * (MEAN + SPREAD * grey * tint)).clamp(0, 255).to(torch.uint8), kinds


@dataclass(frozen=True, slots=True)
class Draws:
    """For each picture of a run in order: which one it is, and its window, as a transform (n, 2, 3) of coordinates."""

    which: Tensor
    windows: Tensor

    @staticmethod
    def make(n: int, n_pictures: int, seed: int = 0) -> Draws:
        """`n` draws from `n_pictures`: windows of half to nine tenths of a side, anywhere, every other one mirrored."""
        dice = torch.Generator().manual_seed(seed)
        which = torch.randint(0, n_pictures, (n,), generator=dice)
        zoom, x, y, coin = (torch.rand(n, generator=dice) for _ in range(4))
        zoom = SMALLEST + (LARGEST - SMALLEST) * zoom
        windows = torch.zeros(n, 2, 3)
        windows[:, 0, 0] = torch.where(coin < 0.5, -zoom, zoom)
        windows[:, 1, 1] = zoom
        windows[:, 0, 2], windows[:, 1, 2] = (2 * x - 1) * (1 - zoom), (2 * y - 1) * (1 - zoom)
        return Draws(which, windows)


def middle(n: int) -> Tensor:
    """Windows (n, 2, 3) around the middle, of middle size, not mirrored: no augmentation."""
    zoom = (SMALLEST + LARGEST) / 2
    return torch.tensor([[zoom, 0.0, 0.0], [0.0, zoom, 0.0]]).repeat(n, 1, 1)


def seen_through(pictures: Tensor, windows: Tensor, side: int = SIDE) -> Tensor:
    """Pictures (n, 3, …) of bytes cropped, scaled and mirrored, as fp32 from 0 to 1 (n, 3, side, side).

    The same for one picture and for many, on the host and on the card; nothing in it makes the host wait for a card.
    """
    grid = functional.affine_grid(windows, [len(pictures), 3, side, side], align_corners=False)
    return functional.grid_sample(pictures.float() / 255, grid, align_corners=False)


def around_zero(pictures: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """Numbers from 0 to 1 as numbers around zero; an fp64 `mean` turns all of them into fp64."""
    return (pictures - mean) / spread


def mean_and_spread(device: Any = "cpu", dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """The two, one number a colour, as tensors that stretch over a picture."""
    one_a_colour = torch.ones(3, 1, 1, dtype=dtype)
    return (one_a_colour * MEAN).to(device), (one_a_colour * SPREAD).to(device)


class OneByOne(Dataset[tuple[Tensor, Tensor]]):
    """Prepares one picture at a time, as most datasets do; a loader stacks them."""

    def __init__(self, pictures: Tensor, kinds: Tensor, draws: Draws) -> None:
        self.pictures, self.kinds, self.draws = pictures, kinds, draws
        self.mean, self.spread = mean_and_spread()

    def __len__(self) -> int:
        return len(self.draws.which)

    def __getitem__(self, k: int) -> tuple[Tensor, Tensor]:
        which = self.draws.which[k]
        seen = seen_through(self.pictures[which].unsqueeze(0), self.draws.windows[k : k + 1])
        return around_zero(seen[0], self.mean, self.spread), self.kinds[which]


class WholeBatch(Dataset[tuple[Tensor, ...]]):
    """Gives a batch at a time: bytes as they are kept, with their windows, or `prepared` "fp32" or "fp64"."""

    def __init__(self, pictures: Tensor, kinds: Tensor, draws: Draws, batch: int, prepared: str = "no") -> None:
        self.pictures, self.kinds, self.draws, self.batch, self.prepared = pictures, kinds, draws, batch, prepared
        self.mean, self.spread = mean_and_spread()

    def __len__(self) -> int:
        return len(self.draws.which) // self.batch

    def __getitem__(self, k: int) -> tuple[Tensor, ...]:
        mine = slice(k * self.batch, (k + 1) * self.batch)
        which, windows = self.draws.which[mine], self.draws.windows[mine]
        if self.prepared == "no":
            return self.pictures[which], self.kinds[which], windows
        seen = seen_through(self.pictures[which], windows)
        if self.prepared == "fp64":  # numpy makes fp64 of a list of numbers, and of every array that meets it
            mean, spread = (np.array([value] * 3).reshape(3, 1, 1) for value in (MEAN, SPREAD))
            return torch.from_numpy((seen.numpy() - mean) / spread), self.kinds[which]
        return around_zero(seen, self.mean, self.spread), self.kinds[which]


class Ready(Dataset[tuple[Tensor, Tensor]]):
    """Gives batches of pictures that were prepared before the run."""

    def __init__(self, numbers: Tensor, kinds: Tensor, draws: Draws, batch: int) -> None:
        order = draws.which[: len(draws.which) // batch * batch].view(-1, batch)
        n_kept = min(len(order), max(1, len(kinds) // batch))
        self._batches = [(numbers[which], kinds[which]) for which in order[:n_kept]]

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, k: int) -> tuple[Tensor, Tensor]:
        return self._batches[k]


@contextmanager
def one_thread() -> Iterator[None]:
    """Meanwhile torch computes on one thread of the processor, as it does in a loader's worker."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def loaded(dataset: Dataset[Any], batch: int | None = None) -> Iterator[Any]:
    """Batches of a dataset through torch's own loader, in order, in this process and on one thread, without an end.

    Without `batch` the dataset gives whole batches itself.
    """
    while True:
        batches = iter(DataLoader(dataset, batch_size=batch))
        while True:
            with one_thread():
                made = next(batches, None)
            if made is None:
                break
            yield made


class PatchNet(nn.Module):
    """Three convolutions with strides and a linear layer; its first one takes patches of 8 by 8 pixels."""

    def __init__(self, kinds: int = len(KINDS)) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 8, stride=4, padding=2),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 128, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(512, kinds),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, kinds)."""
        scores: Tensor = self.body(pictures)
        return scores


class Trainer:
    """The network with its optimizer on a device."""

    def __init__(self, device: torch.device, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.model = PatchNet().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), LEARNING_RATE)

    def learn(self, pictures: Tensor, kinds: Tensor) -> Tensor:
        """One step; gives the loss, left on the device."""
        loss: Tensor = functional.cross_entropy(self.model(pictures), kinds)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()

    def loss(self, pictures: Tensor, kinds: Tensor) -> float:
        """The loss on some pictures, without learning from them."""
        with torch.no_grad():
            return float(functional.cross_entropy(self.model(pictures), kinds))
