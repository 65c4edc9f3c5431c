"""Lesson 7's ways to hand out batches, each a function that gives the epochs of one loader, endless for whoever asks.

All are made for the same order of rows where they can be compared. `device` is where a table may be put at once; the
others leave their batches on the host.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, Subset, TensorDataset, WeightedRandomSampler

from gpututor.jobs import in_memory
from gpututor.jobs.in_memory import BATCH, SEED, ByBatch, ByHand, Order, Slices, table

Batches = Iterable[Any]


def _loader(data: Dataset[Any], n: int, *, batch: int = BATCH, n_workers: int = 0, collate: Any = None) -> Batches:
    """A loader in the order of `Order`, whose workers stay from one epoch to the next."""
    return DataLoader(
        data, batch, sampler=Order(n), collate_fn=collate, num_workers=n_workers, persistent_workers=n_workers > 0
    )


def row_by_row(device: torch.device, n_workers: int = 0, batch: int = BATCH) -> Batches:
    """The usual loader: one call for each row, then stacked."""
    x, y = table()
    return _loader(TensorDataset(x, y), len(x), batch=batch, n_workers=n_workers)


def at_once(device: torch.device, n_workers: int = 0) -> Batches:
    """A loader that asks for a whole batch with one call."""
    data = ByBatch(*table())
    return _loader(data, len(data), n_workers=n_workers, collate=in_memory.as_it_is)


def by_hand(device: torch.device, on_card: bool = False) -> Batches:
    """No loader; the table on the host, or as a whole on the device."""
    x, y = table()
    order = Order(len(x))
    return ByHand(x.to(device), y.to(device), BATCH, order) if on_card else ByHand(x, y, BATCH, order)


def sliced(device: torch.device) -> Batches:
    """No loader; put into order once an epoch, then sliced."""
    x, y = table()
    return Slices(x, y, BATCH, Order(len(x)))


def weighted(device: torch.device, by_batch: bool) -> Batches:
    """A weighted sampler, its rows fetched one by one, or a batch of its indices at once."""
    x, y = table()
    own = torch.Generator().manual_seed(SEED)
    drawn = WeightedRandomSampler((1 + y.abs()).squeeze(1).tolist(), len(x), generator=own)
    data = TensorDataset(x, y)
    if by_batch:  # a sampler of whole batches, and no batching by the loader
        return DataLoader(data, batch_size=None, sampler=BatchSampler(drawn, BATCH, drop_last=False))
    return DataLoader(data, BATCH, sampler=drawn)


def half(device: torch.device, by_batch: bool) -> Batches:
    """Half of the table: as a list of indices into it, or taken out once and indexed by hand."""
    x, y = table()
    chosen = list(range(0, len(x), 2))
    if by_batch:
        return ByHand(x[chosen], y[chosen], BATCH, Order(len(chosen)))
    return _loader(Subset(TensorDataset(x, y), chosen), len(chosen))


def arrays(device: torch.device, stacked: bool) -> Batches:
    """The table as a list of small arrays, made into tensors number by number, or by way of one array."""
    data = in_memory.Rows(*table())
    return _loader(data, len(data), collate=in_memory.stacked_first if stacked else in_memory.tensor_of_list)


def texts(device: torch.device, n_workers: int = 0) -> Batches:
    """Texts that are cut into tokens when they are asked for."""
    data = in_memory.Texts(*in_memory.texts())
    return _loader(data, len(data), n_workers=n_workers)


def tokenized(device: torch.device) -> Batches:
    """The same texts, cut into tokens once."""
    written, y = in_memory.texts()
    known = in_memory.vocabulary()
    numbers = torch.tensor([in_memory.tokens(text, known) for text in written])
    return ByHand(numbers, y, BATCH, Order(len(written)))


def files(device: torch.device, folder: Path, n_files: int, n_workers: int = 0) -> Batches:
    """A file a row."""
    data = in_memory.Files(folder, _written(folder, n_files))
    return _loader(data, len(data), n_workers=n_workers)


def one_file(device: torch.device, folder: Path, n_files: int) -> Batches:
    """All rows in one file, read once."""
    y = _written(folder, n_files)
    return ByHand(torch.from_numpy(np.load(folder / "table.npy")), y, BATCH, Order(len(y)))


def _written(folder: Path, n_files: int) -> torch.Tensor:
    """The labels of the rows in the folder, which are written there at the first call."""
    x, y = table(n_files)
    if not (folder / "table.npy").exists():
        in_memory.write_files(x, folder)
    return y
