"""A small detector's loss: which of its guesses belongs to which object is decided on the host.

Several sets of guesses are matched with the objects of each picture, as detection transformers do it: for every set
and every picture there is a table of costs, and the host picks the cheapest pairing. How the tables come to the host
makes all the difference. Source of the setting: mindee/doctr pull request 2141, 52 sets for 4 pictures.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from torch import Tensor, nn

N_SETS, N_PICTURES, N_OBJECTS = 52, 4, 4
N_FEATURES = 64
LEARNING_RATE = 0.05


@lru_cache(maxsize=1)
def orders() -> Tensor:
    """Every way to pair guesses with objects: (ways, objects)."""
    return torch.tensor(list(itertools.permutations(range(N_OBJECTS))))


def cheapest(costs: Tensor) -> Tensor:
    """For tables (..., guesses, objects) on the host: the guess of each object, (..., objects), cheapest together.

    Tries every order, so it is exact, as the Hungarian method is.

    >>> cheapest(torch.eye(4).roll(1, 0) * -1).tolist()
    [1, 2, 3, 0]
    """
    ways = orders()
    columns = torch.arange(N_OBJECTS)
    in_all = costs[..., ways, columns].sum(-1)  # (..., ways)
    return ways[in_all.argmin(-1)]


def distances(guesses: Tensor, objects: Tensor) -> Tensor:
    """How far each guess (..., guesses, 2) is from each object (..., objects, 2): (..., guesses, objects)."""
    return (guesses.unsqueeze(-2) - objects.unsqueeze(-3)).abs().sum(-1)


def paired(table: Tensor, pairs: Tensor) -> Tensor:
    """The mean cost of these pairs."""
    return table.gather(-2, pairs.unsqueeze(-2)).mean()


def one_by_one(guesses: Tensor, objects: Tensor) -> Tensor:
    """The loss with each table brought over by itself, and each set's pairs sent back by themselves."""
    parts = []
    for one_set in guesses:
        table = distances(one_set, objects)
        chosen = [cheapest(of_picture.detach().cpu()) for of_picture in table]
        parts.append(paired(table, torch.stack(chosen).to(guesses.device)))
    return torch.stack(parts).mean()


def one_transfer(guesses: Tensor, objects: Tensor) -> Tensor:
    """The same kernels, but all tables are brought over at once and all pairs sent back at once."""
    tables = [distances(one_set, objects) for one_set in guesses]
    chosen = cheapest(torch.stack([table.detach() for table in tables]).cpu()).to(guesses.device)
    return torch.stack([paired(*each) for each in zip(tables, chosen, strict=True)]).mean()


def together(guesses: Tensor, objects: Tensor) -> Tensor:
    """All sets as one tensor: a handful of kernels and one transfer each way."""
    tables = distances(guesses, objects)
    chosen = cheapest(tables.detach().cpu()).to(guesses.device)
    return paired(tables, chosen)


Loss = Callable[[Tensor, Tensor], Tensor]
MATCHINGS: Sequence[tuple[str, str, Loss]] = (
    ("one-by-one", "each table by itself", one_by_one),
    ("one-transfer", "the same kernels, one transfer", one_transfer),
    ("together", "one transfer, all sets in one tensor", together),
)


class Detector:
    """A network that guesses where objects are, and pictures' features to learn from; `step(k)` trains it once."""

    def __init__(self, loss: Loss, device: torch.device) -> None:
        torch.manual_seed(0)
        self.loss = loss
        self.net = nn.Sequential(nn.Linear(N_FEATURES, 128), nn.ReLU(), nn.Linear(128, N_SETS * N_OBJECTS * 2)).to(
            device
        )
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=LEARNING_RATE, momentum=0.9)
        dice = torch.Generator().manual_seed(1)
        self.features = torch.randn(N_PICTURES, N_FEATURES, generator=dice).to(device)
        self.objects = torch.rand(N_PICTURES, N_OBJECTS, 2, generator=dice).to(device)

    def step(self, _k: int) -> Tensor:
        """Train once; gives the loss, left on the device."""
        guesses = self.net(self.features).view(N_PICTURES, N_SETS, N_OBJECTS, 2).transpose(0, 1)
        loss = self.loss(guesses, self.objects)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()
