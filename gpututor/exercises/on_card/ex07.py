"""Exercise 7.2 in the learner's process: hands the table over and counts the calls of torch that are made on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gpututor.lab.on_card import as_data

FREE = {"__get__", "size", "dim", "__len__", "as_subclass", "__setstate__"}  # they look at a tensor's outside only
ONE_A_ROW = {"tolist", "numpy", "unbind", "__iter__", "__array__"}  # they hand out all rows for Python to walk through


class Watched(Tensor):
    """A tensor whose uses are counted, and those of whatever is made from it."""

    n_calls = 0

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Do what was asked, and count it."""
        name = getattr(func, "__name__", "")
        if name not in FREE:
            first = args[0] if args else None
            many = name in ONE_A_ROW and isinstance(first, Tensor) and first.dim() > 0
            Watched.n_calls += first.shape[0] if many and first is not None else 1
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]


def run(
    function: Callable[..., Any],
    x: Sequence[Sequence[float]],
    y: Sequence[float],
    order: Sequence[int],
    batch_size: int,
) -> dict[str, Any]:
    """What `function(x, y, order, batch_size)` yields, as data, and how many calls on the table it took."""
    table = torch.tensor(x).as_subclass(Watched), torch.tensor(y).as_subclass(Watched)
    Watched.n_calls = 0
    given = function(*table, list(order), batch_size)
    if given is None or given is ...:
        return {"batches": None, "n_calls": 0}
    pairs = [tuple(pair) for pair in given]
    n_calls = Watched.n_calls
    with torch._C.DisableTorchFunctionSubclass():
        return {"batches": [[as_data(part) for part in pair] for pair in pairs], "n_calls": n_calls}
