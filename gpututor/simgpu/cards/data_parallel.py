"""`torch.nn.DataParallel` on simulated cards: one process, a replica on each card, one interpreter.

Torch's own class runs; what it asks C++ and NCCL for is done here: parameters are broadcast to all cards
every step, inputs scattered, outputs gathered on the first card, gradients reduced to it. Its threads run one
after another, each on a clock of its own (gpututor/model/cards_player.py says how they share Python's lock), so that
the same program always gives the same numbers and times.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from gpututor.model.exchange import CardsExchange, Threads
from gpututor.model.host import PHASES
from gpututor.simgpu.cards.peers import card_number, twin_on
from gpututor.simgpu.forms import device_of
from gpututor.simgpu.memory import Block
from gpututor.simgpu.private.modules import take_tensors
from gpututor.simgpu.session import current, phase
from gpututor.simgpu.streams import card_of
from gpututor.simgpu.tensor import SimTensor


def exchange(kind: str, n_bytes: int, cards: Sequence[int]) -> None:
    """Account a collective in the current streams of these cards."""
    if len(cards) > 1:
        current.session.account(CardsExchange(kind, n_bytes, tuple(cards), PHASES[phase()]))


def broadcast_coalesced(tensors: Any, devices: Any, buffer_size: int = 10485760) -> list[list[Any]]:
    """Copies on every card, sent in flat buffers; the first card keeps its own tensors."""
    cards = [card_of(d) for d in devices]
    given = [t.contiguous() for t in tensors]
    place = {id(t): k for k, t in enumerate(given)}
    out: list[list[Any]] = [list(tensors) if card == cards[0] else [None] * len(given) for card in cards]
    for chunk in take_tensors(given, buffer_size):
        if len(chunk) > 1:
            torch.cat([t.reshape(-1) for t in chunk])  # into one buffer
        n_bytes = sum(t.form.n_bytes for t in chunk)
        exchange("broadcast", n_bytes, cards)
        for card, received in zip(cards, out, strict=True):
            if card != cards[0]:
                block = Block(n_bytes, current.session.memories[card])
                for t in chunk:
                    received[place[id(t)]] = twin_on(t, card, block)
    return out


def broadcast(tensor: Any, devices: Any = None, *, out: Any = None) -> tuple[Any, ...]:
    """Copies on every card."""
    if out is not None:
        for t in out:
            t.copy_(tensor)
        return tuple(out)
    return tuple(received[0] for received in broadcast_coalesced([tensor], devices))


def reduce_add(inputs: Any, destination: Any = None) -> Any:
    """The sum of tensors on different cards, on one of them."""
    root_card = card_of(destination)
    root = next(k for k, t in enumerate(inputs) if card_number(t) == root_card)
    exchange("reduce", inputs[root].form.n_bytes, [card_number(t) for t in inputs])
    result = twin_on(inputs[root], root_card, Block(inputs[root].form.n_bytes, current.session.memories[root_card]))
    for k, t in enumerate(inputs):
        if k != root and result.host is not None and t.host is not None:
            result.host.add_(t.host)
    return result


def scatter(
    tensor: Any, devices: Any, chunk_sizes: Any = None, dim: int = 0, streams: Any = None, *, out: Any = None
) -> tuple[Any, ...]:
    """Parts of a tensor, one on each card."""
    if out is not None:
        parts = tensor.split([t.size(dim) for t in out], dim)
        return tuple(t.copy_(part) for t, part in zip(out, parts, strict=True))
    cards = [card_of(d) for d in devices]
    parts = tensor.chunk(len(cards), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    sent = []
    for k, (part, card) in enumerate(zip(parts, cards, strict=False)):
        stream = streams[k] if streams else None
        with stream if stream is not None else contextlib.nullcontext():
            sent.append(part.to(device_of(card), non_blocking=True))
    return tuple(sent)


def gather(tensors: Any, dim: int = 0, destination: Any = None, *, out: Any = None) -> Any:
    """One tensor of the parts, on one card (or on the host)."""
    size = list(tensors[0].shape)
    size[dim] = sum(t.shape[dim] for t in tensors)
    if out is None:
        on_host = destination == -1 or str(destination) == "cpu"
        device = torch.device("cpu") if on_host else device_of(card_of(destination))
        out = torch.empty(size, dtype=tensors[0].dtype, device=device)
    at = 0
    for t in tensors:
        out.narrow(dim, at, t.shape[dim]).copy_(t, non_blocking=True)
        at += t.shape[dim]
    return out


class _InTurn:
    """In the place of a thread: does its work when it is started, before the next one is."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...] = (), **_: Any) -> None:
        self._target, self._args = target, args

    def start(self) -> None:
        """Do the work."""
        self._target(*self._args)

    def join(self) -> None:
        """Nothing is left to wait for."""


def _only_simulated(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Ours for simulated tensors, torch's own for all others."""

    def choose(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        first = tensors if isinstance(tensors, torch.Tensor) else tensors[0]
        first = first if isinstance(first, torch.Tensor) else first[0]
        ours_too = type(first) is SimTensor or first.device.type == "cpu"
        return (ours if ours_too else original)(tensors, *args, **kwargs)

    return choose


def install() -> None:
    """Let DataParallel find its way to simulated cards."""
    comm = importlib.import_module("torch.nn.parallel.comm")
    for function in (broadcast, broadcast_coalesced, reduce_add, scatter, gather):
        setattr(comm, function.__name__, _only_simulated(getattr(comm, function.__name__), function))
    module = importlib.import_module("torch.nn.parallel.parallel_apply")
    module.threading = SimpleNamespace(Thread=_InTurn, Lock=threading.Lock)  # type: ignore[attr-defined]
    apply_all = module.parallel_apply

    def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> Any:
        cards = tuple(card_of(d) for d in devices) if devices is not None else tuple(range(len(modules)))
        session = current.session
        session.account(Threads(cards, interpreter=True))
        try:
            return apply_all(modules, inputs, kwargs_tup, devices)
        finally:
            session.account(Threads(()))

    for name in ("torch.nn.parallel.parallel_apply", "torch.nn.parallel.data_parallel", "torch.nn.parallel"):
        sys.modules[name].parallel_apply = parallel_apply  # type: ignore[attr-defined]
