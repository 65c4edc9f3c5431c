"""Which values are known with numerics off, and what happens where one isn't.

Nothing large is computed then, but a program steers itself by small things: lengths, masks, token ids, a step counter.
So whole numbers and booleans up to `WHOLE_KEPT` elements and fractions up to `FRACTIONS_KEPT` are still
computed, as long as they come from the host or from other known values. All else is followed by shape only. A known
tensor that something unknown is written into is known no more.
What a program may do with a value that isn't known: copy it, print it (as "not computed"), read it with `.item()`
for a log (a `NotComputed`). What decides a size or a branch raises `NumericsOff`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from gpututor.errors import NumericsOff
from gpututor.simgpu.bits import mark
from gpututor.simgpu.forms import Form, form_of
from gpututor.simgpu.private.tensors import schema_of
from gpututor.simgpu.tensor import SimTensor

TAKEN_AS_FINITE = frozenset({"aten::_amp_foreach_non_finite_check_and_unscale_"})
"""Ops that look for numbers out of range; with numerics off they find none, as in a healthy run."""

NUMBERS = frozenset({int, float, bool})
CPU = torch.device("cpu")
_written: dict[Any, list[tuple[int, str]]] = {}  # places and names of the arguments that an op writes into

CONVOLUTION = torch.ops.aten.convolution.default


def host(t: SimTensor) -> torch.Tensor | None:
    """The tensor's values where they are known, else None."""
    return None if t.host is None or t.block.lost else t.host


def tensors(args: Any) -> Iterator[torch.Tensor]:
    """The tensors among arguments, those in lists too."""
    for a in args:
        if isinstance(a, torch.Tensor):
            yield a
        elif type(a) is list or type(a) is tuple:
            yield from tensors(a)


def all_known(*groups: Any) -> bool:
    """Whether every tensor among these arguments has known values."""
    return all(type(t) is not SimTensor or host(t) is not None for group in groups for t in tensors(group))


def written(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[SimTensor]:
    """The tensors that the op writes into."""
    places = _written.get(op)
    if places is None:
        places = _written[op] = [
            (k, argument.name)
            for k, argument in enumerate(schema_of(op).arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
    found = []
    for k, name in places:
        value = args[k] if k < len(args) else kwargs.get(name)
        found += [t for t in tensors((value,)) if type(t) is SimTensor]
    return found


def concerns(op: Any, outs: tuple[Form | None, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an op on such tensors can make a known value, or spoil one."""
    if any(t.form.kept for t in written(op, args, kwargs)):
        return True
    small = (type(t) is not SimTensor or t.form.kept for t in tensors((*args, *kwargs.values())))
    return bool(outs) and all(f is None or f.kept for f in outs) and all(small)


def compute(
    op: Any,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    constants: dict[str, Any] | None = None,
) -> Any:
    """The op's results if all that goes in is known; else None, and what it writes into is known no more.

    `function` is the op or torch's function inside it; `constants` are `kwargs` for the CPU where they hold no tensor.
    """
    hosts = [_value(a) for a in args]
    if Unknown not in map(type, hosts):
        if not kwargs:
            return function(*hosts)
        if constants is not None:
            return function(*hosts, **constants)
        named = {k: _value(v) if k != "device" or v is None else CPU for k, v in kwargs.items()}
        if Unknown not in map(type, named.values()):
            return function(*hosts, **named)
    if schema_of(op).name not in TAKEN_AS_FINITE:
        for t in written(op, args, kwargs):
            t.block.lost = True
    return None


class Unknown:
    """In the place of an argument whose values are not known; told by its type, since a tensor's == is an op."""


def _value(a: Any) -> Any:
    """An argument on the host, or an `Unknown`."""
    kind = type(a)
    if kind is SimTensor:
        return a.host if a.host is not None and not a.block.lost else _UNKNOWN
    if kind is list or kind is tuple:
        if a and type(a[0]) in NUMBERS:  # torch's lists hold either numbers or tensors
            return a
        items = [_value(x) for x in a]
        return _UNKNOWN if Unknown in map(type, items) else items
    return a


_UNKNOWN = Unknown()


def _plain(a: Any, name: str = "") -> Any:
    if type(a) is SimTensor:
        return a.host
    if name == "device" and a is not None:
        return CPU
    return [_plain(x) for x in a] if type(a) is list or type(a) is tuple else a


def on_meta(a: Any) -> Any:
    """An argument with its tensors on torch's meta device, for an op that only shapes matter to."""
    if type(a) is SimTensor:
        form = a.form
        return mark(torch.empty_strided(form.size, form.stride, dtype=form.dtype, device="meta"), form)
    if isinstance(a, torch.Tensor):
        return a if a.device.type == "meta" else a.to("meta")
    return [on_meta(x) for x in a] if type(a) is list or type(a) is tuple else a


def shapes(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], guess: bool = False) -> Any:
    """The op's results as far as shapes go: on torch's meta device, or computed where values give the shape.

    With `guess` nothing is computed; what torch can't do on shapes alone is torch's error.
    """
    hosted = {k: on_meta(v) for k, v in kwargs.items()}
    if hosted.get("device") is not None:
        hosted["device"] = torch.device("meta")
    try:
        out = op(*map(on_meta, args), **hosted)
        return _laid_out_by_cudnn(out, args[0], args[1]) if op is CONVOLUTION else out
    except (NotImplementedError, RuntimeError) as error:
        if guess:
            raise
        if isinstance(error, NotImplementedError) and not schema_of(op).returns:
            return None  # gives nothing and changes no shape, so torch's lack of a rule for shapes doesn't matter
        if not all_known(args, kwargs.values()):
            if isinstance(error, NotImplementedError) or "meta tensor" in str(error):
                name = schema_of(op).name.removeprefix("aten::")
                raise NumericsOff(
                    f"{name} can't be followed by shape alone: it needs values, and with numerics off they were not "
                    "computed; open the session with numerics=True"
                ) from error
            raise
        return op(*[_plain(a) for a in args], **{k: _plain(v, k) for k, v in kwargs.items()})


def _laid_out_by_cudnn(out: torch.Tensor, x: SimTensor, weight: SimTensor) -> torch.Tensor:
    """A convolution's result in channels_last where input or weight is, which torch's rule for shapes leaves out."""
    layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(out.dim())
    if layout is None or not any(_is_only(t, layout) for t in (x, weight)):
        return out
    return out.contiguous(memory_format=layout)


def _is_only(t: SimTensor, layout: torch.memory_format) -> bool:
    """Whether a tensor has this layout and not the plain one as well, as a single channel does."""
    shape = on_meta(t)
    return bool(shape.is_contiguous(memory_format=layout) and not shape.is_contiguous())


def sized_by_masks(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same arguments where masks, whose values are known, decide the size: numbers in place of the masks.

    Raises:
        NumericsOff: the size depends on values that are not known.
    """
    name = schema_of(op).name.removeprefix("aten::")
    if name == "index":
        places: list[Any] = []
        for i in args[1]:
            is_mask = isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8)
            places += read_any(i, "indexing by a mask").nonzero().unbind(1) if is_mask else [i]
        return args[0], places, *args[2:]
    raise NumericsOff(
        f"{name} gives a tensor whose size depends on values, and with numerics off they were not computed; "
        "open the session with numerics=True"
    )


def dense(size: torch.Size, like: Form) -> Form:
    """The form of a dense tensor of this size, of the dtype and on the card of another one."""
    return form_of(size, torch.empty(size, device="meta").stride(), like.dtype, like.device.index)


def read_any(t: torch.Tensor, what: str) -> torch.Tensor:
    """The values of a simulated tensor or of one on the CPU.

    Raises:
        NumericsOff: they are not known.
    """
    return read(t, what) if type(t) is SimTensor else t


def read(t: SimTensor, what: str) -> torch.Tensor:
    """The values, which `what` can't do without.

    Raises:
        NumericsOff: they are not known.
    """
    found = host(t)
    if found is None:
        raise NumericsOff(
            f"{what} needs the values of a tensor made with numerics off, and they were not computed; "
            "open the session with numerics=True"
        )
    return found
