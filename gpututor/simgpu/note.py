"""How an op that runs whole is accounted: its cost from sizes alone, and what it keeps on the card for backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpututor.model.host import PHASES
from gpututor.model.lowering import lower
from gpututor.model.spec import OpCall
from gpututor.model.tape import TapeOp
from gpututor.simgpu import kept
from gpututor.simgpu.plans import may_round
from gpututor.simgpu.session import current, phase
from gpututor.simgpu.tensor import SimTensor

_entries: dict[tuple[Any, ...], TapeOp] = {}


def shown(name: str) -> str:
    """The op's name without torch's prefixes and overload.

    >>> shown("gpututor.rnn.forward"), shown("aten.native_dropout.default")
    ('rnn.forward', 'native_dropout')
    """
    return name.removeprefix("gpututor.").removeprefix("aten.").removesuffix(".default")


class Note:
    """How one whole op is accounted, forward and backward: by names, shapes (`args`) and facts, the same both ways."""

    __slots__ = ("call", "caller", "card", "extra_bytes", "keeps_tensors", "key", "names", "rounds")

    def __init__(self, forward: str, backward: str, args: tuple[Any, ...], facts: dict[str, Any]) -> None:
        self.names, self.key = (forward, backward), (args, tuple(facts.items()))
        self.card = 0
        self.call: tuple[str, tuple[Any, ...], dict[str, Any]] | None = (
            None  # for a card in another process, see `called`
        )
        self.keeps_tensors, self.extra_bytes = True, 0  # what is kept on the card for backward, see kept.py
        self.rounds = True  # may run in TF32 where a program allows it
        self.caller = phase()  # inside an autograd.Function gradients are off, so the caller's phase is taken here

    def called(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the call itself, where a card in another process is to make it; it keeps its tensors alive till then."""
        if current.session.remote is not None:
            self.call = name, args, kwargs

    def forward(self) -> None:
        """Account the forward call."""
        self._account(self.names[0], self.caller)

    def backward(self) -> None:
        """Account the backward call."""
        self._account(self.names[1], phase())

    def keep(self, ctx: Any, tensors: Sequence[Any], outs: Sequence[Any]) -> None:
        """Keep on the card what backward needs."""
        saved = [t for t in (*tensors, *outs) if type(t) is SimTensor] if self.keeps_tensors else []
        if self.extra_bytes:
            saved.append(kept.space(self.extra_bytes, self.card))
        ctx.save_for_backward(*saved)

    def _account(self, name: str, caller: int) -> None:
        tf32 = self.rounds and may_round(name)
        key = (name, caller, tf32, self.key)
        entry = _entries.get(key)
        if entry is None:
            args, facts = self.key
            cost = lower(OpCall(name, args, facts, args[:1], tf32))
            entry = _entries[key] = TapeOp(shown(name), cost.host, PHASES[caller], cost.kernels)
        session = current.session
        if self.card != session.card:
            session.use_card(self.card)
        session.account(entry)
