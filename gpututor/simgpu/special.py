"""Ops that are more than arithmetic: copies across the link, values read by the host, shapes that data decide."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from gpututor.model.host import PHASES
from gpututor.model.tape import CopyCall, Sync
from gpututor.simgpu import debugging, known
from gpututor.simgpu.cards.peers import copy_between, to_card
from gpututor.simgpu.converting import copy_converting
from gpututor.simgpu.forms import DEVICE_NAME, form_of
from gpututor.simgpu.memory import Block
from gpututor.simgpu.plans import Plan, cost_of, short_name
from gpututor.simgpu.private import operators
from gpututor.simgpu.private.tensors import schema_of
from gpututor.simgpu.recurrent import runs_of
from gpututor.simgpu.session import Session, phase
from gpututor.simgpu.streams import card_of
from gpututor.simgpu.tensor import SimTensor, new, wrap

aten = torch.ops.aten
Special = Callable[[Session, Any, tuple[Any, ...], dict[str, Any]], Any]
SPECIAL: dict[Any, Special] = {}


def special(*ops: Any) -> Callable[[Special], Special]:
    """Register a function for these ops; it may give NotImplemented to leave the ordinary way."""

    def note(function: Special) -> Special:
        for op in ops:
            SPECIAL[op] = function
        return function

    return note


def is_pinned(t: torch.Tensor) -> bool:
    """Whether `pin_memory()` was called on this CPU tensor or on one whose memory it shares."""
    return bool(getattr(t.untyped_storage(), "_gpututor_pinned", False))


def copy_in(session: Session, name: str, source: torch.Tensor, n_bytes: int, non_blocking: bool, card: int) -> None:
    """Account a copy from host memory to a card."""
    if card != session.card:
        session.use_card(card)
    pinned = is_pinned(source)
    session.account(CopyCall(name, True, n_bytes, pinned, not (non_blocking and pinned), PHASES[phase()]))


def copy_out(session: Session, name: str, source: Any, blocking: bool = True, n_bytes: int | None = None) -> None:
    """Account a copy of a tensor (or of `n_bytes` of its card) to host memory."""
    n_bytes = source.form.n_bytes if n_bytes is None else n_bytes
    if source.form.device.index != session.card:
        session.use_card(source.form.device.index)
    session.account(CopyCall(name, False, n_bytes, not blocking, blocking, PHASES[phase()]))


@special(aten.copy_.default)
def copy_(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Across the link this is a copy; within the card an ordinary kernel."""
    target, source = args[0], args[1]
    non_blocking = bool(args[2]) if len(args) > 2 else bool(kwargs.get("non_blocking", False))
    if type(target) is SimTensor and type(source) is SimTensor:
        other = target.form.device.index != source.form.device.index
        return copy_between(session, target, source) if other else NotImplemented
    if type(target) is SimTensor:
        card = target.form.device.index
        copy_converting(session, source, target.form.dtype, non_blocking, card, copy_in)
        if target.host is not None:
            target.host.copy_(source)
    else:
        copy_out(session, "copy to the host", source, not (non_blocking and is_pinned(target)))
        target.copy_(values(source, "copying to the host"))
    return target


@special(operators.TO_COPY)
def to_copy(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`.cpu()` and `.to("cpu")` copy out and wait; a change of dtype on the card is an ordinary kernel."""
    wanted = kwargs.get("device")
    source = args[0]
    if wanted is None or torch.device(wanted).type == DEVICE_NAME:
        if type(source) is SimTensor:
            card = source.form.device.index if wanted is None else card_of(wanted)
            return to_card(session, source, card, kwargs) if card != source.form.device.index else NotImplemented
        dtype = kwargs.get("dtype") or source.dtype
        card = card_of(wanted)
        copy_converting(session, source, dtype, bool(kwargs.get("non_blocking", False)), card, copy_in)
        form = form_of(source.size(), source.stride(), dtype, card)
        if session.numerics or form.kept:
            return wrap(source.to(dtype, copy=True), index=card)
        return new(form, None, Block(form.n_bytes, session.memories[card]))
    if torch.device(wanted).type != "cpu":
        raise RuntimeError(f"a simulated tensor can be copied to the CPU or to {DEVICE_NAME}, not to {wanted}")
    copy_out(session, "copy to the host", source)
    rest = {k: v for k, v in kwargs.items() if k not in ("device", "non_blocking", "pin_memory")}
    host = values(source, "copying to the host")
    return operators.TO_COPY(host, **rest)


@special(operators.ITEM)
def local_scalar(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`.item()`: the host waits for the card and copies one number out."""
    source = args[0]
    copy_out(session, "item", source)
    if source.form.dtype.is_floating_point and known.host(source) is None:
        return math.nan  # a factor or a loss, which decides nothing where C++ asks
    if known.host(source) is None and debugging.found_no_nan(source):
        return False
    return op(values(source, "a decision, a size or an index"))


@special(operators.COMPATIBLE)
def compatible(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Whether a parameter may take over another tensor's memory, which `Module.to` asks of two devices' tensors."""
    return op.decompose(*args, **kwargs)


@special(aten.equal.default)
def equal(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.equal` answers the host, so it waits."""
    refuse_mixed_devices(op, args)
    hosts = [values(a, "torch.equal") for a in args]
    plan = Plan(short_name(op))
    plan.cost = cost_of(op, args, kwargs, (args[0].form,), view=False)
    session.account(plan.entry(phase()))
    copy_out(session, "equal", args[0], n_bytes=1)
    return op(*hosts)


def data_decide_the_shape(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """nonzero, masks, unique: the host must learn the size, so it waits; nothing is remembered."""
    from gpututor.simgpu.dispatch import compute_and_plan

    refuse_mixed_devices(op, args)
    if not session.numerics and not known.all_known(args, kwargs.values()):
        args = known.sized_by_masks(op, args)
    out = compute_and_plan(None, op, args, kwargs)
    session.account(Sync(short_name(op), session.stream_numbers[session.card]))
    return out


def index(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Indexing by a mask waits like nonzero does; by numbers it doesn't."""
    masks = [i for i in args[1] if isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8)]
    return data_decide_the_shape(session, op, args, kwargs) if masks else NotImplemented


SPECIAL[aten.index.Tensor] = index
SPECIAL[operators.UNIQUE] = data_decide_the_shape
for _name in (
    "nonzero.default",
    "masked_select.default",
    "unique_dim.default",
    "unique_consecutive.default",
    "bincount.default",
    "repeat_interleave.Tensor",
    "argwhere.default",
):
    _base, _, _overload = _name.partition(".")
    if hasattr(aten, _base):
        SPECIAL[getattr(getattr(aten, _base), _overload)] = data_decide_the_shape


@special(operators.LEFT_ALIGNED)
def left_aligned(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Nested tensors can't be wrapped; TransformerEncoder then keeps the padded path."""
    return False


@special(operators.PACK)
def pack(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Lengths stay on the host, as with CUDA: the second result is a CPU tensor.

    On the card it is a slice and a copy for every length that occurs, and one `cat` of them.
    Source: pytorch/pytorch aten/src/ATen/native/PackedSequence.cpp, _pack_padded_sequence.
    """
    padded, lengths, batch_first = args
    _, batch_sizes = op(torch.empty((*padded.shape[:2], 1)), lengths, batch_first)
    steps = padded.transpose(0, 1) if batch_first else padded
    parts, at = [], 0
    for batch, n in runs_of(batch_sizes):
        parts.append(steps[at : at + n, :batch].contiguous().view(n * batch, *steps.shape[2:]))
        at += n
    return torch.cat(parts), batch_sizes


def seen(session: Session, name: str, t: SimTensor, what: str) -> torch.Tensor:
    """A tensor's values for showing or saving; the copy is accounted by this name."""
    if session.remote is not None:
        return session.remote.read(name, t)
    host: torch.Tensor = values(t, what)
    copy_out(session, name, t)
    return host


def values(t: Any, what: str) -> Any:
    """The numbers of a simulated tensor, which the host wants to see."""
    return known.read(t, what) if type(t) is SimTensor else t


TAKES_HOST_TENSORS = frozenset(
    {"aten::copy_", "aten::index", "aten::index_put_", "aten::_index_put_impl_", "aten::index_put", "aten::set_"}
)


def refuse_mixed_devices(op: Any, args: tuple[Any, ...]) -> None:
    """What CUDA refuses: tensors of two devices in one op, single numbers excepted."""
    if schema_of(op).name in TAKES_HOST_TENSORS:
        return
    flat = [x for a in args for x in (a if type(a) in (list, tuple) else (a,))]
    devices = {str(t.device) for t in flat if isinstance(t, torch.Tensor) and t.dim() > 0}
    if len(devices) > 1:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{' and '.join(sorted(devices))}! (when running {short_name(op)})"
        )
