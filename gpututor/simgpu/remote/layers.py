"""Ops that run whole, on the card's side: autograd's graph is the program's, so here forward and backward are calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from gpututor.simgpu import exact, whole_ops
from gpututor.simgpu.remote import wire
from gpututor.simgpu.remote.calls import caller, number, text
from gpututor.simgpu.remote.told import form_told
from gpututor.simgpu.remote.wire import foul
from gpututor.simgpu.session import thread
from gpututor.simgpu.tensor import SimTensor, new

if TYPE_CHECKING:
    from gpututor.simgpu.remote.card import Card


@dataclass(slots=True, eq=False)
class Call:
    """Stands in for autograd's context in an op that runs whole."""

    needs_input_grad: tuple[bool, ...]
    kept: tuple[Any, ...] = ()
    note: Any = None
    index: int = 0
    hosts: Any = None
    outs: Any = None

    def save_for_backward(self, *tensors: Any) -> None:
        """The program's side keeps tensors alive; only space that nothing else names is kept from here."""
        self.kept = tensors[-1:] if self.note.extra_bytes else ()


class Layers:
    """The whole ops of one program, and what their backward passes need."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.calls: dict[int, Call] = {}
        self.kernels: dict[str, Callable[..., Any]] = {**whole_ops.KERNELS, **exact.KERNELS}
        self._results: tuple[Any, ...] | None = None
        self._last: Call | None = None
        whole_ops.apply_by(self.apply)

    def whole(self, phase: Any, first: Any, which: Any, name: Any, args: Any, named: Any, need: Any, state: Any) -> Any:
        """Run a recurrent layer, attention or dropout; `need` are the tensors that want a gradient.

        Gives the forms of the results and of what is kept beside, and the generator's state if one was sent.
        """
        kernel = self.kernels.get(name) if type(name) is str else None
        if kernel is None or any(type(a) is not list for a in (args, named, need)):
            raise foul("a layer that a card doesn't have")
        wanted = {id(self.card.numbered.known(t)) for t in need}
        args = [_with_gradient(a, wanted) for a in args]
        thread.caller = caller(phase)
        with torch.set_grad_enabled(bool(wanted)):
            if state is not None and state is not True:
                self.card.not_data(state)
                set_state(torch.default_generator, state)
            kernel(*args, **{text(key): value for key, value in named})
        results, call = self._taken()
        if results is None or call is None or len(self.calls) > wire.MAX_TENSORS:
            raise foul("a layer that does nothing")
        kept, call.kept = call.kept, ()
        self.card.numbered.keep(first, [*results, *kept])
        if wanted:
            self.calls[number(which, 1 << 48)] = call
        forms = [form_told(t.form) for t in results], [form_told(t.form) for t in kept]
        return [*forms, self.card.operators.state(False) if state is not None else None]

    def _taken(self) -> tuple[tuple[Any, ...] | None, Call | None]:
        """What `apply` was called for; not kept, lest memory stay in use."""
        taken = self._results, self._last
        self._results = self._last = None
        return taken

    def apply(self, compute: Any, note: Any, *tensors: Any) -> Any:
        """What stands in for autograd's `Function.apply`."""
        train = torch.is_grad_enabled()
        call = Call((False, False, *(train and isinstance(t, torch.Tensor) and t.requires_grad for t in tensors)))
        with torch.no_grad():
            results = whole_ops.Whole.forward(call, compute, note, *tensors)
        self._results, self._last = results, call
        return results

    def backward(self, phase: Any, first: Any, which: Any, grads: Any) -> Any:
        """The gradients of such an op; gives a form for each of its tensors, or None."""
        call = self.calls.get(which) if type(which) is int else None
        if call is None or type(grads) is not list or len(grads) != len(call.outs):
            raise foul("a backward pass of nothing")
        thread.caller = caller(phase)
        found = whole_ops.Whole.backward(call, *(None if g is None else self.card.numbered.known(g) for g in grads))[2:]
        self.card.numbered.keep(first, [g for g in found if g is not None])
        return [None if g is None else form_told(g.form) for g in found]

    def forget(self, args: list[Any]) -> None:
        """The program has let go of the backward passes of these ops."""
        for which in args:
            if type(which) is int:
                self.calls.pop(which, None)


def set_state(generator: Any, state: Any) -> None:
    """Put a generator into the state that the program sent.

    Raises:
        Foul: it is no state.
    """
    if not isinstance(state, torch.Tensor) or type(state) is SimTensor or state.dtype is not torch.uint8:
        raise foul("a generator's state that is none")
    generator.set_state(state)


def _with_gradient(value: Any, wanted: set[int]) -> Any:
    """The argument, its tensors asking for a gradient where the program's do; others than the card's own objects."""
    if type(value) is list:
        return [_with_gradient(v, wanted) for v in value]
    if type(value) is SimTensor and id(value) in wanted:
        return new(value.form, value.host, value.block).requires_grad_()
    return value
