"""Forms, results and errors as data, on their way from the card to the program."""

from __future__ import annotations

import builtins
from typing import Any

import torch

from gpututor import errors
from gpututor.simgpu.bits import LazyForm, form_with_bits
from gpututor.simgpu.forms import Form, form_of
from gpututor.simgpu.remote.wire import DTYPES, NAME_OF

BITS = ("is_conj", "is_neg")


def form_told(form: Form) -> list[Any]:
    """A form as data."""
    bits = form.bits if isinstance(form, LazyForm) else ()
    return [list(form.size), list(form.stride), NAME_OF[form.dtype], form.device.index or 0, list(bits)]


def form_heard(told: list[Any]) -> Form:
    """The form that was told."""
    size, stride, name, card, bits = told
    form = form_of(torch.Size(size), tuple(stride), DTYPES[name], card)
    return form_with_bits(form, tuple(bits)) if bits else form


TORCH_ERRORS: dict[str, Any] = {
    "OutOfMemoryError": torch.OutOfMemoryError,
    "LinAlgError": getattr(torch.linalg, "LinAlgError", RuntimeError),
}
"""Errors of torch's own that an operator may raise."""


def error_told(error: Exception) -> list[str]:
    """Kind and message of an error."""
    return [type(error).__name__, str(error)[:20_000]]


def error_heard(kind: str, message: str) -> Exception:
    """The error, of the same kind where Python, torch or gpututor has it; else a RuntimeError."""
    found: Any = TORCH_ERRORS.get(kind) or getattr(builtins, kind, None)
    if found is None and isinstance(getattr(errors, kind, None), type):
        made: Exception = Exception.__new__(getattr(errors, kind), message)
        made.args = (message,)
        return made
    if isinstance(found, type) and issubclass(found, Exception) and found is not UnicodeDecodeError:
        error: Exception = found(message)
        return error
    return RuntimeError(message)
