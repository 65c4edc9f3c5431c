"""Lesson 3: the same network with more and more pictures a step, and what a large batch does to learning.

Two jobs in one run. How long a step takes is asked of ResNet-50 on pictures of 224x224, by shape only: its arithmetic
would take a laptop minutes. What is learned is asked of a small network on drawn shapes, which really trains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
N_PICTURES, N_HELD_OUT, N_EPOCHS = 4096, 1024, 8
BASE_BATCH, BASE_RATE = 16, 0.01
MOMENTUM = 0.9
WARMUP_SHARE = 0.15  # of the steps; Goyal et al. 2017, "Accurate, Large Minibatch SGD", take 5 epochs of 90 to 5 of 30
RUN_ON = "H100-SXM"  # its memory holds the largest batch; the page prices what was done on any other card


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the small network learns: its batch, whether the rate grew with it, and whether it follows a schedule."""

    batch: int
    scaled: bool = False
    scheduled: bool = False

    @property
    def rate(self) -> float:
        """The learning rate or its peak; scaled, it is in proportion to the batch (Goyal et al. 2017)."""
        return BASE_RATE * (self.batch / BASE_BATCH if self.scaled else 1)

    @property
    def key(self) -> str:
        """Names its file."""
        return f"learn-{self.batch}" + ("-scaled" if self.scaled else "") + ("-scheduled" if self.scheduled else "")

    @property
    def label(self) -> str:
        """What a reader sees."""
        how = ", with a schedule" if self.scheduled else ""
        return f"batch {self.batch}, rate {self.rate:g}{how}"

    @property
    def steps_of_an_epoch(self) -> int:
        """Steps to see every picture once."""
        return N_PICTURES // self.batch


RECIPES = (
    Recipe(BASE_BATCH),
    Recipe(64),
    Recipe(64, scaled=True),
    Recipe(128, scaled=True),
    Recipe(128, scaled=True, scheduled=True),
    Recipe(256, scaled=True, scheduled=True),
)


def schedule(k: int, n_steps: int) -> float:
    """The share of the highest rate at step `k` of `n_steps`: a straight warm-up, then half a cosine down to nothing.

    Source: warm-up, Goyal et al. 2017; cosine, Loshchilov and Hutter 2017, "SGDR".

    >>> [round(schedule(k, 20), 2) for k in (0, 2, 11, 19)]
    [0.33, 1.0, 0.54, 0.01]
    """
    n_warmup = max(1, int(WARMUP_SHARE * n_steps))
    if k < n_warmup:
        return (k + 1) / n_warmup
    return 0.5 * (1 + math.cos(math.pi * (k - n_warmup) / (n_steps - n_warmup)))


def resnet50(batch: int, device: torch.device) -> Step:
    """A training step of ResNet-50 on `batch` random pictures, with SGD."""
    import torch
    from torch import nn

    from gpututor.workloads.vision.resnets import ResNet50

    torch.manual_seed(0)
    net = ResNet50().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=MOMENTUM)
    pictures = torch.randn(batch, 3, 224, 224, device=device)
    kinds = torch.randint(0, 1000, (batch,), device=device)

    def step(_k: int) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(pictures), kinds)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


class Learning:
    """The small network and its data on a device, one step at a time; every recipe sees the same pictures in order."""

    def __init__(self, recipe: Recipe, n_epochs: int, device: torch.device) -> None:
        import torch

        from gpututor.jobs.shapes import SmallNet, draw

        torch.manual_seed(0)
        self.recipe = recipe
        self.net: nn.Module = SmallNet().to(device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=recipe.rate, momentum=MOMENTUM)
        self.n_steps = n_epochs * recipe.steps_of_an_epoch
        pictures, kinds = draw(N_PICTURES)
        dice = torch.Generator().manual_seed(1)
        order = torch.cat([torch.randperm(N_PICTURES, generator=dice) for _ in range(n_epochs)])
        self.pictures, self.kinds, self.order = pictures.to(device), kinds.to(device), order.to(device)
        self.device = device

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`; its loss stays on the device."""
        from torch import nn

        recipe = self.recipe
        if recipe.scheduled:
            for group in self.optimizer.param_groups:
                group["lr"] = recipe.rate * schedule(k, self.n_steps)
        chosen = self.order[k * recipe.batch : (k + 1) * recipe.batch]
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(self.pictures[chosen]), self.kinds[chosen])
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def held_out(self) -> float:
        """The loss on pictures that it never saw."""
        import torch
        from torch import nn

        from gpututor.jobs.shapes import draw

        pictures, kinds = draw(N_HELD_OUT, seed=1)
        with torch.no_grad():
            scores = self.net(pictures.to(self.device))
            return float(nn.functional.cross_entropy(scores, kinds.to(self.device)))


def variants(
    batches: Sequence[int] = BATCHES, recipes: Sequence[Recipe] = RECIPES, n_epochs: int = N_EPOCHS
) -> list[Variant]:
    """ResNet-50 at each batch, then the small network with each recipe."""
    timed = [
        Variant(f"batch-{n}", f"{n} pictures" if n > 1 else "1 picture", partial(resnet50, n), n, n, 3, numerics=False)
        for n in batches
    ]
    learned = [
        Variant(
            each.key,
            each.label,
            partial(Learning, each, n_epochs),
            each.batch,
            each.batch,
            n_epochs * each.steps_of_an_epoch,
            n_warmup=0,
        )
        for each in recipes
    ]
    return timed + learned


def run(
    progress: Progress, *, batches: Sequence[int] = BATCHES, n_epochs: int = N_EPOCHS, machine: str = RUN_ON
) -> dict[str, Any]:
    """All of it on the simulated card; see `sweeps.simulate`."""
    chosen = variants(batches, RECIPES, n_epochs)
    return sweeps.simulate(progress, chosen, what="lesson 3, batches", machine=machine)


def measure(progress: Progress, *, device: str = "cuda", batches: Sequence[int] = BATCHES[:6]) -> dict[str, Any]:
    """ResNet-50 on this computer's GPU; on a processor the small network, which a processor can train."""
    if device == "cpu":
        small = [
            Variant(each.key, each.label, partial(Learning, each, 1), each.batch, each.batch, 30) for each in RECIPES
        ]
        return sweeps.measure(progress, small[:2], what="lesson 3, batches", device=device)
    return sweeps.measure(progress, variants(batches, ()), what="lesson 3, batches", device=device, n_steps=10)
