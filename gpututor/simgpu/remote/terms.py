"""What a program gets of a card, and what is left of each run; no part of it is the program's to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gpututor.simgpu.remote.wire import foul
from gpututor.simgpu.tensor import SimTensor


@dataclass(frozen=True, slots=True)
class Terms:
    """What a program gets: how many runs, and what lies on the card before it starts (functions, by module:name)."""

    n_runs: int = 1
    placed: Sequence[tuple[str, Sequence[Any]]] = ()
    judged: bool = True
    """Whether reading is confined to the counted part, and step marks are the card's own."""
    reads_before: bool = False
    """Whether values may be read before the counted part too: where nothing in it can be known so early."""
    n_ops: int = 300_000


@dataclass(slots=True)
class Ran:
    """One run: its tape, what the program gave with the card's values in it, and what it sent meanwhile."""

    machine: str
    tape: bytes = b""
    gave: Any = None
    received_bytes: int = 0
    """Bytes of host tensors that came while the counted part ran, accounted as copies or not."""
    over: bool = False


def filled(gave: Any) -> Any:
    """What the program gave, with values in the place of tensors: ["D", pairs], ["L", items] or a plain value."""
    if isinstance(gave, SimTensor):
        return None if gave.host is None else gave.host.tolist()
    if isinstance(gave, torch.Tensor):
        return gave.tolist()
    if type(gave) is list and len(gave) == 2 and type(gave[1]) is list:
        if gave[0] == "L":
            return [filled(each) for each in gave[1]]
        if gave[0] == "D" and all(type(pair) is list and len(pair) == 2 for pair in gave[1]):
            return {str(name): filled(each) for name, each in gave[1]}
    if gave is None or type(gave) in (bool, int, float, str):
        return gave
    raise foul("a result of no known kind")
