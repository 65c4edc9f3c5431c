"""Tensors that go from one simulated card to another."""

from __future__ import annotations

from typing import Any

import torch

from gpututor.model.exchange import PeerCopy
from gpututor.model.host import PHASES
from gpututor.simgpu.forms import form_of
from gpututor.simgpu.memory import Block
from gpututor.simgpu.private.operators import TO_COPY
from gpututor.simgpu.session import Session, phase
from gpututor.simgpu.tensor import SimTensor, new


def card_number(t: SimTensor) -> int:
    """On which card a tensor lies."""
    return t.form.device.index or 0


def account_copy(session: Session, source: int, target: int, n_bytes: int) -> None:
    """A copy over the link between two cards, in both cards' current streams."""
    session.account(PeerCopy("copy to another GPU", source, target, n_bytes, PHASES[phase()]))


def copy_between(session: Session, target: SimTensor, source: SimTensor) -> SimTensor:
    """`target.copy_(source)` where the two lie on different cards."""
    account_copy(session, card_number(source), card_number(target), source.form.n_bytes)
    if target.host is not None and source.host is not None:
        target.host.copy_(source.host)
    return target


def to_card(session: Session, source: SimTensor, card: int, kwargs: dict[str, Any]) -> SimTensor:
    """`source.to("simgpu:1")`: a copy on that card, of another dtype where one is asked for."""
    account_copy(session, card_number(source), card, source.form.n_bytes)
    dtype = kwargs.get("dtype") or source.form.dtype
    if source.host is not None:
        wanted = kwargs.get("memory_format")
        host = TO_COPY(source.host, dtype=dtype, memory_format=wanted)
        size, stride = host.size(), host.stride()
    else:
        host, size, stride = None, source.form.size, source.form.stride
    form = form_of(size, stride, dtype, card)
    return new(form, host, Block(form.n_bytes, session.memories[card]))


def twin_on(source: SimTensor, card: int, block: Block) -> SimTensor:
    """A contiguous copy of `source` in a block of another card, which the caller accounts."""
    host = None if source.host is None else source.host.clone(memory_format=torch.contiguous_format)
    stride = torch.empty(source.form.size, device="meta").stride() if host is None else host.stride()
    return new(form_of(source.form.size, stride, source.form.dtype, card), host, block)
