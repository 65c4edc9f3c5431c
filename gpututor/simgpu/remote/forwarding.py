"""Operators on their way to a card in another process: the place in dispatch where a session's watch sits.

An op that was seen before with the same forms isn't waited for: what it makes is known, and the card works meanwhile.
Waited for is whatever a program could notice: values, sizes that hang on values, errors that hang on values (indices
out of range), random numbers (the generator is the program's), and allocations that might not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import is_grad_enabled

from gpututor.simgpu import rng, sparse
from gpututor.simgpu.bits import LazyForm, mark
from gpututor.simgpu.dispatch import RESIZING
from gpututor.simgpu.forms import Form
from gpututor.simgpu.keys import key_of
from gpututor.simgpu.plans import OpPlans
from gpututor.simgpu.private import operators
from gpututor.simgpu.private.tensors import DisableTorchDispatch, fp32_precision, make_wrapper_subclass, schema_of
from gpututor.simgpu.remote.line import Line
from gpututor.simgpu.remote.ops import flat
from gpututor.simgpu.remote.told import form_heard
from gpututor.simgpu.remote.whole import RemoteWhole
from gpututor.simgpu.session import FORWARD, NO_GRAD, thread
from gpututor.simgpu.special import SPECIAL, is_pinned
from gpututor.simgpu.tensor import SimTensor
from gpututor.simgpu.watching import is_composite

if TYPE_CHECKING:
    from gpututor.simgpu.remote.session import RemoteSession

COPY = torch.ops.aten.copy_.default
TO_COPY = operators.TO_COPY
SOFTMAXES = (
    operators.SOFTMAX,
    operators.LOG_SOFTMAX,
    operators.SOFTMAX_BACKWARD,
    operators.LOG_SOFTMAX_BACKWARD,
)
BY_FORM = frozenset({TO_COPY, *SOFTMAXES})
"""Ops with a way of their own on the card, whose results' forms follow from the arguments' all the same."""
WHOLE_NUMBERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


class Known:
    """What is known of one op: its name on the socket, and what it gave for forms that it was seen with."""

    def __init__(self, op: Any) -> None:
        self.plans = OpPlans(op)
        self.name = op.name()
        self.seeded = rng.SEEDED in op.tags
        dynamic = torch.Tag.dynamic_output_shape in op.tags or torch.Tag.inplace_view in op.tags
        special = op in SPECIAL and op not in BY_FORM
        self.repeats = not (
            dynamic or self.seeded or special or op in RESIZING or is_composite(op) or "arange" in self.name
        )
        self.writes = [k for k, a in enumerate(schema_of(op).arguments) if a.alias_info and a.alias_info.is_write]
        self.is_view = any(a.alias_info and not a.alias_info.is_write for a in schema_of(op).arguments)
        self.given: dict[Any, Any] = {}


class RemoteWatch:
    """Takes each op of a session and hands it to the card."""

    clock = None

    def __init__(self, session: RemoteSession, line: Line) -> None:
        self.session, self.line = session, line
        self.listeners: list[Any] = []
        self._known: dict[int, Known] = {}
        self._precisions = ("", "", "")
        self._state: torch.Tensor | None = None  # the generator's, as the card has it

    # --- what the device calls ----------------------------------------------------------------------------------

    def run(self, run_now: Callable[..., Any], op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """The op's result, computed by the card."""
        known = self._known.get(id(op))
        if known is None:
            known = self._known.setdefault(id(op), Known(op))
        if known.is_view and torch.is_inference_mode_enabled() and args and not args[0].is_inference():
            with torch.inference_mode(False), torch.no_grad():  # a view of a plain tensor is plain
                return self.run(run_now, op, args, kwargs)
        if known.repeats and not kwargs:
            key = known.plans.key_of(args)
        elif known.repeats and kwargs:
            key = (*known.plans.key_of(args), *kwargs, *map(key_of, kwargs.values()))
        else:
            return self.first_time(known, None, op, args, kwargs or {})
        gives = known.given.get(key)
        if (
            gives is None
            or (op is TO_COPY and kwargs and kwargs.get("device") is not None)
            or self.session.capturing is not None
        ):
            return self.first_time(known, key, op, args, kwargs or {})
        forms, how, n_bytes = gives
        line = self.line
        if n_bytes and not line.spend(n_bytes, len(forms)):
            return self.first_time(known, key, op, args, kwargs or {})
        self.look_at_precisions()
        p = thread.caller
        if p is None:
            p = FORWARD if is_grad_enabled() else NO_GRAD
        named = list(map(list, kwargs.items())) if kwargs else ()
        line.put("o", p, line.next_number, known.name, args, named, None, None)
        if how == "self":
            return args[0]
        if how == "none":
            return None
        made = [line.made(form) for form in forms]
        return made[0] if how == "one" else tuple(made)

    def first_time(self, known: Known, key: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Wait for what the op gives, and remember it where that is safe."""
        if op is COPY and type(args[0]) is not SimTensor:
            return self.copied_out(args, kwargs)
        if op is COPY and args[0].size() == args[1].size() and self.session.capturing is None:
            return self.copied(known, args, kwargs)
        if sparse.among(args):
            raise NotImplementedError("sparse tensors are not there on a card in another process; make them dense")
        places = [args[k] if k < len(args) else None for k in known.writes]
        if any(isinstance(t, torch.Tensor) and t.device.type == "cpu" for t in flat(places)):
            raise RuntimeError(f"{known.name} can't write into a tensor on the CPU what the card computes")
        if not known.seeded:
            return self.waited(known, key, args, kwargs, None)
        if rng.in_step_with_host(args, kwargs) or not _generator_of(args, kwargs):
            return rng.drawn(self.drawing, known, args, kwargs, torch.default_generator)
        return self.drawing(known, args, kwargs, _generator_of(args, kwargs))

    def waited(self, known: Known, key: Any, args: Any, kwargs: dict[str, Any], draws: Any) -> Any:
        """Ask, and build what came."""
        self.look_at_precisions()
        line, own = self.line, draws is not None and draws is not torch.default_generator
        if draws is not None:
            args = tuple(None if a is draws else a for a in args)
            kwargs = {name: value for name, value in kwargs.items() if value is not draws}
        named = [[name, value] for name, value in kwargs.items()]
        state = None if draws is None else self.state_of(draws)
        told, after, changed = line.ask("o", phase_now(), line.next_number, known.name, args, named, state, own)
        if after is not None:
            self.take_state(draws, after)
        tensors = [t for t in (*args[:1], *kwargs.values()) if type(t) is SimTensor]
        for k, form in changed:
            become(tensors[k], form_heard(form))
        out = self.built(told, args, kwargs)
        if key is not None:
            gives = _gives(told, out)
            if gives is not None and not _may_fail(args):
                known.given[key] = gives
        return out

    def built(self, told: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """A result from what the card told of it."""
        if told is None:
            return None
        kind, rest = told
        if kind == "t":
            form = form_heard(rest)
            made = self.line.made(form)
            return mark(made, form) if isinstance(form, LazyForm) else made
        if kind == "a":
            return args[rest] if isinstance(rest, int) else kwargs[rest]
        if kind == "l":
            return tuple([self.built(each, args, kwargs) for each in rest])
        if kind == "h":
            return self.line.host_tensor(rest)
        return complex(*rest) if isinstance(rest, list) else rest

    # --- copies ---------------------------------------------------------------------------------------------------

    def copied(self, known: Known, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A copy into a tensor of the card makes nothing new, so nobody waits for it."""
        named = [[name, value] for name, value in kwargs.items()]
        self.line.put("o", phase_now(), self.line.next_number, known.name, args, named, None, None)
        return args[0]

    def copied_out(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A copy into a tensor of the host."""
        target, source = args[0], args[1]
        asked = bool(args[2]) if len(args) > 2 else bool(kwargs.get("non_blocking", False))
        behind = asked and is_pinned(target)
        target.copy_(self.line.host_tensor(self.line.ask("r", phase_now(), "copy to the host", source, behind)))
        return target

    # --- random numbers --------------------------------------------------------------------------------------------

    def drawing(self, known: Known, args: Any, kwargs: dict[str, Any], generator: Any) -> Any:
        """An op that draws from this generator of ours; the card draws as it would, and tells how it left it."""
        return self.waited(known, None, args, kwargs, generator)

    def state_of(self, generator: Any) -> Any:
        """The generator's state, or True where the card has it."""
        state = generator.get_state()
        same = generator is torch.default_generator and self._state is not None and torch.equal(self._state, state)
        return True if same else state

    def take_state(self, generator: Any, told: Any) -> None:
        """The state in which the card left it."""
        state = self.line.host_tensor(told)
        generator.set_state(state)
        if generator is torch.default_generator:
            self._state = state

    # --- ops that run whole -----------------------------------------------------------------------------------------

    def whole(self, apply: Callable[..., Any], compute: Any, note: Any, tensors: tuple[Any, ...]) -> Any:
        """A recurrent layer, attention or dropout, with its backward on the card."""
        return RemoteWhole.apply(self, note, *tensors)

    def drawn_whole(self, draws: bool, ask: Callable[[Any], Any]) -> Any:
        """What the card gives for such an op; `ask` gets the generator's state if the op draws."""
        return rng.drawn(self._drawn_whole, ask) if draws else ask(None)

    def _drawn_whole(self, ask: Callable[[Any], Any]) -> Any:
        told = ask(self.state_of(torch.default_generator))
        self.take_state(torch.default_generator, told[2])
        return told

    def whole_backward(self, backward: Callable[..., Any], ctx: Any, grads: tuple[Any, ...]) -> Any:
        """The backward of an op that ran whole in this process."""
        return backward(ctx, *grads)

    # --- the rest of a watch ------------------------------------------------------------------------------------------

    def backward_done(self) -> None:
        """Nobody listens."""

    def inside(self) -> Any:
        """There is no paced clock that would want to know."""
        return nullcontext()

    def add(self, listener: Any) -> None:
        """Whoever listens to ops would see none of them here.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("compiled regions can't be followed on a card in another process; run the code plain")

    def look_at_precisions(self) -> None:
        """Tell the card what the program allows, where that has changed."""
        now = tuple(fp32_precision("cuda", what) for what in ("matmul", "conv", "rnn"))
        if now != self._precisions:
            self._precisions = now
            self.line.put("f", *now)


def phase_now() -> int:
    """Who calls the device."""
    p = thread.caller
    return p if p is not None else FORWARD if is_grad_enabled() else NO_GRAD


def become(t: SimTensor, form: Form) -> None:
    """The card gave this tensor another size or other strides."""
    with DisableTorchDispatch():
        torch.Tensor.data.__set__(t, make_wrapper_subclass(*form.made_of))  # type: ignore[attr-defined]
    t.form = form


def _generator_of(args: Any, kwargs: dict[str, Any]) -> Any:
    return kwargs.get("generator") or next((a for a in args if isinstance(a, torch.Generator)), None)


def _may_fail(args: Any) -> bool:
    """Whether values decide if the op works (indices), or tensors of the host take part, which no key describes."""
    return any(
        isinstance(t, torch.Tensor) and (type(t) is not SimTensor or t.form.dtype in WHOLE_NUMBERS) for t in flat(args)
    )


def _gives(told: Any, out: Any) -> tuple[list[Form], str, int] | None:
    """What the op gives again for the same forms: forms, how they come, and their bytes; None if it can't be said."""
    if told is None:
        return [], "none", 0
    if told == ["a", 0]:
        return [], "self", 0
    kind, rest = told
    if kind != "t" and not (kind == "l" and all(each and each[0] == "t" for each in rest)):
        return None
    several = out if kind == "l" else (out,)
    if any(isinstance(t.form, LazyForm) for t in several):
        return None
    forms = [t.form for t in several]
    return forms, "many" if kind == "l" else "one", sum(form.n_bytes for form in forms)
