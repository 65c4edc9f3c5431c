"""Exercise 7.2 in the learner's process: hands the table over and counts the calls of torch that are made on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpututor.lab.on_card import as_data, laid, recorded

if TYPE_CHECKING:
    from torch import Tensor

FREE = {"__get__", "size", "dim", "__len__", "as_subclass", "__setstate__"}  # they look at a tensor's outside only
ONE_A_ROW = {"tolist", "numpy", "unbind", "__iter__", "__array__"}  # they hand out all rows for Python to walk through


def watched(counted: list[int]) -> type[Tensor]:
    """A kind of tensor that adds to `counted[0]` for each use of one, and of whatever is made from it."""
    import torch

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            name = getattr(func, "__name__", "")
            if name not in FREE:
                first = args[0] if args else None
                many = name in ONE_A_ROW and isinstance(first, torch.Tensor) and first.dim() > 0
                counted[0] += first.shape[0] if many and first is not None else 1
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]

    return Watched


def run(
    function: Callable[..., Any],
    x: Sequence[Sequence[float]],
    y: Sequence[float],
    order: Sequence[int],
    batch_size: int,
) -> dict[str, Any]:
    """What `function(x, y, order, batch_size)` yields, as data, and how many calls on the table it took."""
    import torch

    counted = [0]
    kind = watched(counted)
    table = torch.tensor(x).as_subclass(kind), torch.tensor(y).as_subclass(kind)
    counted[0] = 0
    given = function(*table, list(order), batch_size)
    if given is None or given is ...:
        return {"batches": None, "n_calls": 0}
    pairs = [tuple(pair) for pair in given]
    n_calls = counted[0]
    return {"batches": [[as_data(part) for part in pair] for pair in pairs], "n_calls": n_calls}


def run_on_card(
    function: Callable[..., Any],
    machine: str,
    table: Any,
    order: Sequence[int],
    batch_size: int,
    *,
    card_fd: int | None = None,
) -> dict[str, Any]:
    """What `function` launches on a table that lies on the card, and yields: counted where its process can't count."""

    def make() -> Callable[[], Any]:
        x, y = laid(table)
        return lambda: [list(pair) for pair in function(x, y, list(order), batch_size)]

    return recorded(machine, make, card_fd=card_fd)
