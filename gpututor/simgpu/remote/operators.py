"""Operators on the card's side of the socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from gpututor.model.tape import Sync
from gpututor.simgpu import dispatch, rng
from gpututor.simgpu.private.tensors import schema_of
from gpututor.simgpu.remote import ops, wire
from gpututor.simgpu.remote.calls import caller, text
from gpututor.simgpu.remote.layers import set_state
from gpututor.simgpu.remote.told import form_told
from gpututor.simgpu.remote.wire import foul
from gpututor.simgpu.session import thread
from gpututor.simgpu.tensor import SimTensor

if TYPE_CHECKING:
    from gpututor.simgpu.remote.card import Card

ARANGE = torch.ops.aten.arange.start_step


class Operators:
    """Runs what the program asks for, and tells what came of it."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.generator: Any = None

    def op(self, phase: Any, first: Any, name: Any, args: Any, named: Any, state: Any, own: Any) -> Any:
        """Run one operator; gives its result as data, the generator's state if it draws, and forms that it changed."""
        op = ops.op_named(name)
        if type(args) is not list or type(named) is not list or any(type(n) is not list or len(n) != 2 for n in named):
            raise foul("an operator without arguments")
        kwargs = {text(key): value for key, value in named}
        ops.on_card(op, args, kwargs)
        thread.caller = caller(phase)
        changing = [t for t in (*args[:1], *kwargs.values()) if type(t) is SimTensor]
        before, n_before = [t.form for t in changing], len(self.card.of().tape.entries)
        if state is not None:
            out = self.drawn(state, own, kwargs, lambda: dispatch.enter(op, tuple(args), kwargs))
        elif op is ARANGE:
            out = dispatch.compute_and_plan(None, op, tuple(args), kwargs)
        else:
            out = dispatch.enter(op, tuple(args), kwargs)
        if ops.tells_host(out) and op not in ops.ACCOUNTED and not self.card.has_waited(n_before):
            self.card.of().account(Sync(str(schema_of(op).name).removeprefix("aten::")))
        self.card.may_read(since=n_before)
        made: list[SimTensor] = []
        reply = [self.result(out, args, kwargs, made)]
        self.card.numbered.keep(first, made)
        reply.append(self.state(own) if state is not None else None)
        reply.append(
            [
                [k, form_told(t.form)]
                for k, (t, was) in enumerate(zip(changing, before, strict=True))
                if t.form is not was
            ]
        )
        return reply

    def result(self, out: Any, args: Any, kwargs: dict[str, Any], made: list[SimTensor]) -> Any:
        """A result as data; new tensors go to `made`, and those that were handed in are named by their place."""
        if out is None:
            return None
        if isinstance(out, tuple | list):
            return ["l", [self.result(o, args, kwargs, made) for o in out]]
        if type(out) is SimTensor:
            for place, given in (*enumerate(args), *kwargs.items()):
                if given is out:
                    return ["a", place]
            made.append(out)
            return ["t", form_told(out.form)]
        if isinstance(out, torch.Tensor):
            if out.device.type != "cpu":
                raise NotImplementedError(
                    "sparse tensors are not there on a card in another process; make the gradient dense (sparse=False)"
                )
            return ["h", wire.described(out, self.card.reply_raw)["h"]]
        return ["v", [out.real, out.imag] if isinstance(out, complex) else out]

    def drawn(self, state: Any, own: Any, kwargs: dict[str, Any], run: Callable[[], Any]) -> Any:
        """`run()` with the program's generator in the state it is in over there."""
        self.card.not_data(state)
        if own:
            kwargs["generator"] = self.generator = rng.Generator("simgpu")
            set_state(self.generator, state)
        elif state is not True:
            set_state(torch.default_generator, state)
        return run()

    def state(self, own: Any) -> Any:
        """The generator's state after an op that draws."""
        generator = self.generator if own else torch.default_generator
        return wire.described(generator.get_state(), self.card.reply_raw)["h"]
