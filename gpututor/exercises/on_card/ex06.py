"""Exercise 6.2 in the learner's process: has the loader read two epochs of pictures that note who read them."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

READ_S = 0.004  # long enough that no worker can take another one's batch as well


class Noted(Dataset[Tensor]):
    """Pictures that are their number, the process that read them, and its threads in torch."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: int) -> Tensor:
        time.sleep(READ_S)
        return torch.tensor([k, os.getpid(), torch.get_num_threads()])


def run(loader: Callable[..., Any], n_pictures: int, n_cores: int) -> dict[str, Any]:
    """Two epochs as lists of batches, each a list of [number, process, threads]; and this process's number."""
    made = loader(Noted(n_pictures), n_cores)
    epochs = [[batch.tolist() for batch in made] for _ in range(2)]
    del made
    gc.collect()  # ends workers that were to stay
    return {"epochs": epochs, "own": os.getpid()}
