"""The scripts of public threads on slow loaders, run as they stand there, without a card: only the host's time counts.

Each is a loop over batches of random numbers that does nothing with them. A loop is done several times and its calmest
time counts, because another program on this computer can only make it longer.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

N_TIMES = 3  # at least; a short loop is done again until it was given this time, or so often
WITHIN_S, MOST_TIMES = 0.3, 20
SMALL = (10_000, 5, 256)  # rows, columns, batch of the script in the thread pytorch#10260
WIDER = (20_000, 20, 256)  # of the one in pytorch#106704
PETASTORM_BATCH = 1_000  # one of the batches in the table of petastorm#492
ARRAYS = (2, 512, 512, 3)  # pytorch#30460 has ten of these arrays; two keep it short, and the ratio is the same


def loops(tell: Callable[[str], None], n_times: int = N_TIMES) -> dict[str, float]:
    """Seconds of each loop by name; `tell` gets a name before its loop.

    "by row 0" to "by row 2" and "by batch 0" to "by batch 2": an epoch of the small table with so many workers, who
    are started for it as the script does. "loader" and "slices": an epoch of the wider table. "petastorm by row" and
    "petastorm by batch": the same in its batches. "list" and "array": a tensor from arrays.
    """
    small, wider = _tables(*SMALL[:2]), _tables(*WIDER[:2])
    found: dict[str, float] = {}

    def timed(name: str, batches: Callable[[], Iterable[Any]]) -> None:
        tell(name)
        taken = [_seconds(batches) for _ in range(n_times)]
        while sum(taken) < WITHIN_S and len(taken) < MOST_TIMES and n_times > 1:
            taken.append(_seconds(batches))
        found[name] = min(taken)

    for n_workers in (0, 1, 2):
        timed(f"by row {n_workers}", lambda n=n_workers: _by_row(*small, SMALL[2], n))  # type: ignore[misc]
        timed(f"by batch {n_workers}", lambda n=n_workers: _by_batch(*small, SMALL[2], n))  # type: ignore[misc]
    timed("loader", lambda: _by_row(*wider, WIDER[2], 0))
    timed("slices", lambda: _slices(*wider, WIDER[2]))
    timed("petastorm by row", lambda: _by_row(*wider, PETASTORM_BATCH, 0))
    timed("petastorm by batch", lambda: _by_batch(*wider, PETASTORM_BATCH, 0))
    _arrays(timed)
    return found


def _tables(n_rows: int, n_columns: int) -> tuple[Tensor, Tensor]:
    import torch

    own = torch.Generator().manual_seed(0)
    return torch.randn(n_rows, n_columns, generator=own), torch.randn(n_rows, generator=own)


def _by_row(x: Tensor, y: Tensor, batch: int, n_workers: int) -> Iterable[Any]:
    from torch.utils.data import DataLoader, TensorDataset

    return DataLoader(TensorDataset(x, y), batch, shuffle=True, num_workers=n_workers)


def _by_batch(x: Tensor, y: Tensor, batch: int, n_workers: int) -> Iterable[Any]:
    from torch.utils.data import DataLoader

    from gpututor.jobs.in_memory import ByBatch, as_it_is

    return DataLoader(ByBatch(x, y), batch, shuffle=True, num_workers=n_workers, collate_fn=as_it_is)


def _slices(x: Tensor, y: Tensor, batch: int) -> Iterable[Any]:
    return ((x[k : k + batch], y[k : k + batch]) for k in range(0, len(x), batch))


def _arrays(timed: Callable[[str, Callable[[], Iterable[Any]]], None]) -> None:
    import numpy as np
    import torch

    n, *shape = ARRAYS
    draw = np.random.default_rng(0)
    arrays = [draw.random(shape).astype(np.float32) for _ in range(n)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch says that this is slow: it is what is timed
        timed("list", lambda: torch.tensor(arrays))
    timed("array", lambda: torch.tensor(np.array(arrays)))


def _seconds(batches: Callable[[], Iterable[Any]]) -> float:
    """How long it takes to make these batches and walk through them."""
    began_s = time.perf_counter()
    for _ in batches():
        pass
    return time.perf_counter() - began_s
