"""A small job on data that is already in memory: rows of a table or short texts, and the ways to hand out batches.

Every way that is made for the same `Order` gives the same batches, so a network that is trained on them gets the same
losses, whatever the handing out costs. All data is drawn with generators of its own.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset, Sampler, TensorDataset

N_ROWS = 16_384
N_COLUMNS = 20  # as the table of the thread pytorch#106704
BATCH = 256  # as its batch
SEED = 7
NOISE = 0.1  # standard deviation of what can't be learned, where the target's own is about 0.7

N_TEXTS, WORDS_PER_TEXT = 4_096, 64
N_WORDS = 2_000
SYLLABLES = "ba de fi go ku la me ni po ru".split()
WORD = re.compile(r"\w+|[^\w\s]")

Array = NDArray[np.float32]


def table(n_rows: int = N_ROWS, n_columns: int = N_COLUMNS, seed: int = SEED) -> tuple[Tensor, Tensor]:
    """Rows of `n_columns` numbers each in fp32, and the number to be learned from each, (n_rows, 1)."""
    own = torch.Generator().manual_seed(seed)
    x = torch.randn(n_rows, n_columns, generator=own)
    weights = torch.randn(n_columns, 2, generator=own) / n_columns**0.5
    turned = x @ weights
    y = torch.sin(2 * turned[:, 0]) + 0.5 * turned[:, 1] ** 2
    return x, (y + NOISE * torch.randn(n_rows, generator=own)).unsqueeze(1)


def texts(n: int = N_TEXTS, n_words: int = WORDS_PER_TEXT, seed: int = SEED) -> tuple[list[str], Tensor]:
    """`n` texts of `n_words` made-up words each, and the number to be learned from each, (n, 1)."""
    own = torch.Generator().manual_seed(seed)
    worth = torch.randn(N_WORDS, generator=own)
    chosen = torch.randint(N_WORDS, (n, n_words), generator=own)
    known = vocabulary()
    by_number = list(known)
    written = [" ".join(by_number[k] for k in row) for row in chosen.tolist()]
    return written, worth[chosen].mean(1, keepdim=True) * n_words**0.5


def vocabulary() -> dict[str, int]:
    """The number of each word.

    >>> [word for word, k in vocabulary().items() if k in (0, 1, 1999)]
    ['babababa', 'bababade', 'derururu']
    """
    return {"".join(SYLLABLES[int(digit)] for digit in f"{k:04d}"): k for k in range(N_WORDS)}


def tokens(text: str, known: dict[str, int]) -> list[int]:
    """The numbers of a text's words, found as a tokenizer in plain Python does it: cut, fold, look up.

    >>> tokens("Bababade, babababa", vocabulary())
    [1, 0, 0]
    """
    return [known.get(word, 0) for word in WORD.findall(text.lower())]


# --- the order of an epoch -------------------------------------------------------------------------------------------


class Order(Sampler[int]):
    """The numbers 0 to n - 1 in a new order each epoch, the same for everyone who begins with the same seed."""

    def __init__(self, n: int, seed: int = SEED) -> None:
        self.n, self.seed, self.epoch = n, seed, 0

    def draw(self) -> Tensor:
        """The next epoch's order."""
        own = torch.Generator().manual_seed(self.seed + self.epoch)
        self.epoch += 1
        return torch.randperm(self.n, generator=own)

    def __iter__(self) -> Iterator[int]:
        yield from self.draw().tolist()

    def __len__(self) -> int:
        return self.n


# --- ways to hand out batches ----------------------------------------------------------------------------------------


class ByBatch(TensorDataset):
    """A table that a loader asks once for a whole batch; use it with `as_it_is` for collate_fn."""

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        chosen = torch.as_tensor(indices)
        return tuple(tensor[chosen] for tensor in self.tensors)


def as_it_is(batch: Any) -> Any:
    """A batch that needs no collating."""
    return batch


class ByHand:
    """Batches without a loader: draw the order, cut it, index the table with each piece."""

    def __init__(self, x: Tensor, y: Tensor, batch: int, order: Order) -> None:
        self.x, self.y, self.batch, self.order = x, y, batch, order

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for piece in torch.split(self.order.draw().to(self.x.device), self.batch):
            yield self.x[piece], self.y[piece]


class Slices(ByHand):
    """The table put into order once an epoch; a batch is then a slice, which moves no data."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = self.order.draw()
        x, y = self.x[order], self.y[order]
        for k in range(0, len(x), self.batch):
            yield x[k : k + self.batch], y[k : k + self.batch]


class Rows(Dataset[tuple[Array, Array]]):
    """A list of small arrays, one a row, as many readers of files leave it."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.pairs: list[tuple[Array, Array]] = [
            (a.copy(), b.copy()) for a, b in zip(x.numpy(), y.numpy(), strict=True)
        ]

    def __getitem__(self, index: int) -> tuple[Array, Array]:
        return self.pairs[index]

    def __len__(self) -> int:
        return len(self.pairs)


def tensor_of_list(pairs: Sequence[tuple[Array, Array]]) -> tuple[Tensor, Tensor]:
    """A batch as torch.tensor makes it from a list of arrays: number by number; torch warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.tensor([a for a, _ in pairs]), torch.tensor([b for _, b in pairs])


def stacked_first(pairs: Sequence[tuple[Array, Array]]) -> tuple[Tensor, Tensor]:
    """The same batch by way of one array."""
    return torch.from_numpy(np.stack([a for a, _ in pairs])), torch.from_numpy(np.stack([b for _, b in pairs]))


class Texts(Dataset[tuple[Tensor, Tensor]]):
    """Texts that are cut into tokens each time they are asked for."""

    def __init__(self, written: Sequence[str], y: Tensor) -> None:
        self.written, self.y, self.known = written, y, vocabulary()

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.tensor(tokens(self.written[index], self.known)), self.y[index]

    def __len__(self) -> int:
        return len(self.written)


class Files(Dataset[tuple[Tensor, Tensor]]):
    """A table of which each row is a file of its own."""

    def __init__(self, folder: Path, y: Tensor) -> None:
        self.folder, self.y = folder, y

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(np.load(self.folder / f"{index}.npy")), self.y[index]

    def __len__(self) -> int:
        return len(self.y)


def write_files(x: Tensor, folder: Path) -> None:
    """Write each row into a file of its own, and the whole table into table.npy beside them."""
    rows = x.numpy()
    for k, row in enumerate(rows):
        np.save(folder / f"{k}.npy", row)
    np.save(folder / "table.npy", rows)


def endless(batches: Iterable[Any]) -> Iterator[Any]:
    """Epoch after epoch of these batches."""
    while True:
        yield from batches


# --- networks --------------------------------------------------------------------------------------------------------


def table_net(n_columns: int = N_COLUMNS) -> nn.Module:
    """A network that learns the table."""
    return nn.Sequential(nn.Linear(n_columns, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))


class TextNet(nn.Module):
    """A network that learns the texts: the mean of what each word is worth."""

    def __init__(self) -> None:
        super().__init__()
        self.worth = nn.Embedding(N_WORDS, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, numbers: Tensor) -> Tensor:
        """One number a text."""
        out: Tensor = self.out(self.worth(numbers).mean(1))
        return out


class Training:
    """A network at its training: `step(x, y)` moves a batch to the device, learns from it and gives the loss there."""

    def __init__(self, net: nn.Module, device: torch.device, rate: float = 0.05) -> None:
        self.net, self.device = net.to(device), device
        self.optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Train one batch."""
        x, y = x.to(self.device), y.to(self.device)
        loss = nn.functional.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()
