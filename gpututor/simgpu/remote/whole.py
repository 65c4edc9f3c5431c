"""Ops that run whole on a card in another process: autograd's graph is the program's, the layer's own the card's."""

from __future__ import annotations

from typing import Any

import torch

from gpututor.simgpu.remote.told import form_heard
from gpututor.simgpu.session import phase
from gpututor.simgpu.tensor import SimTensor
from gpututor.simgpu.whole_ops import differentiated_once


class Told:
    """A call that the card keeps for its backward, until the last who needs it is gone."""

    def __init__(self, number: int, freed: list[int]) -> None:
        self.number, self.freed = number, freed

    def __del__(self) -> None:
        self.freed.append(self.number)


class RemoteWhole(torch.autograd.Function):
    """Asks the card for the op and, later, for its gradients."""

    @staticmethod
    def forward(ctx: Any, watch: Any, note: Any, *tensors: Any) -> Any:
        """The op's results, as the card made them."""
        line = watch.line
        (name, args, kwargs), note.call = note.call, None
        need = [t for t, wanted in zip(tensors, ctx.needs_input_grad[2:], strict=True) if wanted]
        watch.look_at_precisions()
        number, line.next_call = line.next_call, line.next_call + 1
        named = [[key, value] for key, value in kwargs.items()]
        outs, kept, _ = watch.drawn_whole(
            draws(name, args),
            lambda s: line.ask("w", note.caller, line.next_number, number, name, args, named, need, s),
        )
        results = [line.made(form_heard(form)) for form in outs]
        space = [line.made(form_heard(form)) for form in kept]
        if need:
            ctx.watch, ctx.call = watch, Told(number, line.freed_calls)
            saved = [t for t in (*tensors, *results) if type(t) is SimTensor] if note.keeps_tensors else []
            ctx.save_for_backward(*saved, *space)
        return tuple(results)

    @staticmethod
    @differentiated_once
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients, as the card made them."""
        line = ctx.watch.line
        told = line.ask("b", phase(), line.next_number, ctx.call.number, list(grads))
        return (None, None, *(None if form is None else line.made(form_heard(form)) for form in told))


def draws(name: str, args: Any) -> bool:
    """Whether an op of this name draws random numbers when it is called so.

    >>> draws("dropout", (None, 0.5, True)), draws("scaled_dot_product_attention", (0, 0, 0, None, 0.0, False))
    (True, False)
    """
    if name == "dropout":
        return True
    if name == "scaled_dot_product_attention":
        return bool(args[4] > 0)
    if name.endswith((".input", ".data")):  # a recurrent layer: …, dropout, train, …
        dropout, train = (args[-3], args[-2]) if name.endswith(".data") else (args[-4], args[-3])
        return bool(dropout > 0 and train)
    return False
