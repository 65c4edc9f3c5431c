"""Optimizers by name, each in three ways, and three jobs that put them to work.

The jobs: parameters cut into pieces and nothing else, a deep network of many small tensors on drawn shapes, and
samples that each name a few rows of a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor, nn

from gpututor.jobs.rules import Rule, Way
from gpututor.jobs.shapes import KINDS, draw

SIDE = 16  # pixels along a side of a drawn shape
N_PICTURES, N_HELD_OUT = 8192, 1024
WIDTH, DEPTH, BATCH = 64, 16, 64
N_NAMED, N_USED = 8, 4096  # rows that a sample names, and rows that are named at all
ROWS_BATCH, ROW = 128, 64  # samples a step, and numbers in a row of the table


RATES = {Rule.SGD: 0.1, Rule.MOMENTUM: 0.03, Rule.ADAM: 0.002, Rule.ADAMW: 0.002}
"""The best of three or four rates, a factor of two or three apart, for 200 steps of `DeepJob`."""
MOMENTUM, DECAY = 0.9, 0.1


def optimizer(rule: Rule, way: Way, parameters: Iterable[Tensor], rate: float | None = None) -> torch.optim.Optimizer:
    """Torch's own optimizer for a rule, told to go through the parameters in one way.

    Without a `rate` it is the one of `RATES`.
    """
    each, fused = way is Way.FOREACH, way is Way.FUSED
    lr = RATES[rule] if rate is None else rate
    if rule is Rule.ADAM:
        return torch.optim.Adam(parameters, lr, foreach=each, fused=fused)
    if rule is Rule.ADAMW:
        return torch.optim.AdamW(parameters, lr, weight_decay=DECAY, foreach=each, fused=fused)
    momentum = MOMENTUM if rule is Rule.MOMENTUM else 0.0
    return torch.optim.SGD(parameters, lr, momentum=momentum, foreach=each, fused=fused)


class PiecesJob:
    """`n_numbers` parameters in `n_pieces` tensors of one size, each with its gradient; a step is an update."""

    def __init__(self, device: torch.device, rule: Rule, way: Way, n_numbers: int, n_pieces: int) -> None:
        pieces = [torch.zeros(n_numbers // n_pieces, device=device, requires_grad=True) for _ in range(n_pieces)]
        for piece in pieces:
            piece.grad = torch.zeros_like(piece)
        self._optimizer = optimizer(rule, way, pieces)

    def __call__(self, _k: int) -> None:
        """Update all pieces."""
        self._optimizer.step()


class DeepNet(nn.Module):
    """A residual network of small linear layers: six tensors a block, some hundred in all."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(SIDE * SIDE, WIDTH)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
            for _ in range(DEPTH)
        )
        self.last = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(KINDS)))

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, kinds)."""
        x = self.first(pictures.flatten(1))
        for block in self.blocks:
            x = x + block(x)
        scores: Tensor = self.last(x)
        return scores


class DeepJob:
    """The deep network with drawn shapes and an optimizer on one device; every rule sees the same pictures in order.

    Sets torch's global seed.
    """

    def __init__(self, device: torch.device, rule: Rule, way: Way) -> None:
        torch.manual_seed(0)
        self.net = DeepNet().to(device)
        self.optimizer = optimizer(rule, way, self.net.parameters())
        pictures, kinds = _shapes(N_PICTURES, 0)
        self._device, self._pictures, self._kinds = device, pictures.to(device), kinds.to(device)
        self._order = torch.randperm(N_PICTURES, generator=torch.Generator().manual_seed(1)).to(device)

    def __call__(self, k: int) -> Tensor:
        """Train on the k-th batch; its mean loss, left on the device."""
        at = k * BATCH % N_PICTURES
        chosen = self._order[at : at + BATCH]
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(self._pictures[chosen]), self._kinds[chosen])
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        self.optimizer.step()
        return loss.detach()

    def held_out(self) -> float:
        """The loss on pictures that it never saw."""
        pictures, kinds = _shapes(N_HELD_OUT, 1)
        with torch.no_grad():
            return float(F.cross_entropy(self.net(pictures.to(self._device)), kinds.to(self._device)))


@lru_cache(maxsize=2)
def _shapes(n: int, seed: int) -> tuple[Tensor, Tensor]:
    return draw(n, seed, SIDE)


class RowsJob:
    """A table of `n_rows`; each sample names a few of them, and their mean tells its kind.

    The samples are the same whatever the table's size: rows from a set of `N_USED`, some far more often than others,
    spread over the table. With `sparse` the table's gradient holds the named rows only, and SparseAdam updates those;
    otherwise the gradient is as large as the table, and Adam walks through all of it. The rest of the model is updated
    by Adam in both. Sets torch's global seed.
    """

    def __init__(
        self, device: torch.device, n_rows: int, *, sparse: bool, batch: int = ROWS_BATCH, width: int = ROW
    ) -> None:
        torch.manual_seed(0)
        with device:  # a large table is never made on the host
            self.table = nn.Embedding(n_rows, width, sparse=sparse)
            self.last = nn.Linear(width, len(KINDS))
        rest = optimizer(Rule.ADAM, Way.FUSED, self.last.parameters(), 0.01)
        of_table = (
            torch.optim.SparseAdam(list(self.table.parameters()), lr=0.01)
            if sparse
            else optimizer(Rule.ADAM, Way.FUSED, self.table.parameters(), 0.01)
        )
        self._optimizers = (of_table, rest)
        self._batch, self._device, self._n_rows = batch, device, n_rows
        self._named, self._kinds = (each.to(device) for each in _samples(n_rows, 64 * batch, 2))

    def _loss(self, named: Tensor, kinds: Tensor) -> Tensor:
        return F.cross_entropy(self.last(self.table(named).mean(1)), kinds)

    def __call__(self, k: int) -> Tensor:
        """Train on the k-th batch; its mean loss, left on the device."""
        at = k * self._batch % self._named.shape[0]
        for each in self._optimizers:
            each.zero_grad()
        loss = self._loss(self._named[at : at + self._batch], self._kinds[at : at + self._batch])
        loss.backward()  # type: ignore[no-untyped-call]
        for each in self._optimizers:
            each.step()
        return loss.detach()

    def held_out(self) -> float:
        """The loss on samples that it never saw."""
        named, kinds = (each.to(self._device) for each in _samples(self._n_rows, N_HELD_OUT, 3))
        with torch.no_grad():
            return float(self._loss(named, kinds))


def _samples(n_rows: int, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows named by each sample (n, named), and its kind (n,): the kind that most of them are of.

    Popular rows come up as in Zipf's law. Rows are spread by a step that has no factor in common with any table's size.
    """
    dice = torch.Generator().manual_seed(seed)
    popular = torch.floor(N_USED ** torch.rand(n, N_NAMED, generator=dice)).long() - 1
    kind_of = torch.randint(0, len(KINDS), (N_USED,), generator=torch.Generator().manual_seed(1))
    votes = F.one_hot(kind_of[popular], len(KINDS)).sum(1)
    return popular * 2_147_483_629 % n_rows, votes.argmax(1)
