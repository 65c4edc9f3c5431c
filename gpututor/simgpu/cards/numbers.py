"""What collectives do with the ranks' numbers, on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch.distributed import ReduceOp

from gpututor.simgpu.tensor import SimTensor

FOLDS: dict[Any, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.AVG: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}


def numbers(t: torch.Tensor) -> torch.Tensor | None:
    """A tensor's values on the host, None with numerics off."""
    return t.host if type(t) is SimTensor else t


def fill(target: torch.Tensor, values: torch.Tensor | None) -> None:
    """Write these values into a tensor, where there are any."""
    host = numbers(target)
    if host is not None and values is not None:
        host.detach().copy_(values.reshape(host.shape))


def fold(op: Any, given: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The reduction of all ranks' values, in order of the ranks."""
    hosts = [h for h in map(numbers, given) if h is not None]
    if len(hosts) < len(given):
        return None
    kind = op.op if hasattr(op, "op") else op
    known = next((f for k, f in FOLDS.items() if k == kind), None)
    if known is None:
        raise NotImplementedError(f"simulated ranks can't reduce with {kind}; use SUM, AVG, MIN, MAX or PRODUCT")
    first = hosts[0]
    if kind in (ReduceOp.SUM, ReduceOp.AVG) and all(h is first for h in hosts):  # ranks that do the same
        return first * (len(hosts) if kind == ReduceOp.SUM else 1)
    total = reduce(known, hosts)
    return total / len(hosts) if kind == ReduceOp.AVG else total


def ghosts(given: Any, kind: str, n: int) -> list[Any]:
    """What `n` ranks gave that all do what one does; where each receives something else, in copies."""
    shared = kind in ("all_reduce", "broadcast", "reduce", "all_gather", "barrier")
    return [given] + [given if shared else _copied(given) for _ in range(n - 1)]


def _copied(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        host = numbers(given)
        return given if host is None else host.clone()
    return type(given)(_copied(g) for g in given)
