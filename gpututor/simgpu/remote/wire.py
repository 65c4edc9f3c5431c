"""What goes through the socket between a program and its card: frames of short JSON texts, and raw bytes of tensors.

A frame is two lengths, then messages (JSON lists, one a line), then the bytes of the tensors in them. Nothing in it can
name a function or a class; a tensor on the card is a number, and its values come only where the card accounts it.

What the program alone knows is told as a hint, and believed:

* the phase of an op (forward, backward, optimizer, TorchScript): it decides what an op costs the host. By
  data/hosts.toml a lie brings a factor of 1.6 for an elementwise op and 2.5 for an optimizer's list of tensors, on the
  host's time alone; never a launch, a kernel, a copy or a wait. The card can't tell who calls;
* calls of modules: leaving them out saves what a module costs the host, as writing the same in functions would;
* whether host memory is pinned: pinning costs nothing here, so the same could be had honestly;
* TF32: the same switch that every program may set; results stay those of float32;
* host work of a stated length, which can only add time. As a mark (lesson 8) it is the harness's word, not the card's.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from gpututor.simgpu.forms import DTYPE_NAME
from gpututor.simgpu.remote.frames import MIB, Foul, foul, receive, send

__all__ = ["MIB", "Foul", "described", "foul", "plain", "receive", "send"]

MAX_RAW_IN_ALL_BYTES = 2048 * MIB
MAX_TENSORS = 100_000
MAX_DIMS = 32
DTYPES = {name: dtype for dtype, name in DTYPE_NAME.items()}
LAYOUTS = {"strided": torch.strided}
FORMATS = {
    name: getattr(torch, name) for name in ("preserve_format", "contiguous_format", "channels_last", "channels_last_3d")
}
NAME_OF = {value: name for table in (DTYPES, LAYOUTS, FORMATS) for name, value in table.items()}


# --- values -----------------------------------------------------------------------------------------------------


def described(t: torch.Tensor, raw: list[bytes]) -> dict[str, Any]:
    """A CPU tensor as data: its bytes go to `raw`, from its first to its last element as they lie in memory."""
    t = t.detach().resolve_conj().resolve_neg()
    if t.layout is not torch.strided or t.dtype not in NAME_OF:
        raise NotImplementedError(f"a card in another process takes dense tensors only, and got {t.layout}, {t.dtype}")
    pinned = bool(getattr(t.untyped_storage(), "_gpututor_pinned", False))
    n_spanned = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
    flat = t.as_strided((n_spanned,), (1,)).view(torch.uint8) if n_spanned else torch.empty(0, dtype=torch.uint8)
    raw.append(flat.numpy().tobytes())
    at = sum(map(len, raw[:-1]))
    return {"h": [at, n_spanned, NAME_OF[t.dtype], list(t.shape), list(t.stride()), pinned]}


def whole_numbers(values: Any, most: int = MAX_DIMS) -> list[int]:
    """A list of whole numbers from 0, which sizes and strides are.

    Raises:
        Foul: it is anything else.
    """
    if (
        type(values) is not list
        or len(values) > most
        or any(type(v) is not int or not 0 <= v < 1 << 48 for v in values)
    ):
        raise foul("sizes that are no sizes")
    return values


def tensor_of(told: Any, raw: memoryview) -> torch.Tensor:
    """The CPU tensor that was `described`, in memory of its own.

    Raises:
        Foul: its parts don't fit together.
    """
    if type(told) is not list or len(told) != 6:
        raise foul("a tensor without its parts")
    at, n_spanned, name, size, stride, pinned = told
    size, stride = whole_numbers(size), whole_numbers(stride)
    whole_numbers([at, n_spanned])
    dtype = DTYPES.get(name) if type(name) is str else None
    if dtype is None or len(size) != len(stride):
        raise foul("a tensor of no known dtype")
    reach = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    n_bytes = n_spanned * dtype.itemsize
    if reach != n_spanned or at + n_bytes > len(raw):
        raise foul("a tensor that is longer than its bytes")
    if not n_spanned:
        return torch.empty_strided(size, stride, dtype=dtype)
    flat = torch.frombuffer(bytearray(raw[at : at + n_bytes]), dtype=dtype)
    if pinned is True:
        flat.untyped_storage()._gpututor_pinned = True  # type: ignore[attr-defined]
    return flat.as_strided(size, stride)


def decoded(text: bytes, hook: Any) -> Any:
    """One JSON text, its marked values put in place by `hook`.

    Raises:
        Foul: it is no JSON, or too deep.
    """
    try:
        return json.loads(text, object_hook=hook)
    except (ValueError, RecursionError, UnicodeDecodeError):
        raise foul("a message that is no JSON") from None


def plain(told: dict[str, Any]) -> Any:
    """A marked value that is neither tensor nor device: a dtype, a layout, a complex number.

    Raises:
        Foul: there is no such mark.
    """
    if len(told) == 1:
        ((mark, value),) = told.items()
        tables: dict[str, dict[str, Any]] = {"d": DTYPES, "l": LAYOUTS, "c": FORMATS}
        table = tables.get(mark)
        if table is not None and type(value) is str and value in table:
            return table[value]
        if mark == "z" and type(value) is list and len(value) == 2 and all(type(v) is float for v in value):
            return complex(*value)
    raise foul("a value of no known kind")


def marked(value: Any) -> dict[str, Any]:
    """The mark for a dtype, a layout, a memory format or a complex number.

    Raises:
        NotImplementedError: it is something else, which a card in another process can't be sent.
    """
    kind = type(value)
    name = NAME_OF.get(value) if kind in (torch.dtype, torch.layout, torch.memory_format) else None
    if name is not None:
        return {{torch.dtype: "d", torch.layout: "l", torch.memory_format: "c"}[kind]: name}
    if kind is complex:
        return {"z": [value.real, value.imag]}
    raise NotImplementedError(f"a card in another process can't be handed {kind.__name__} ({str(value)[:60]})")
