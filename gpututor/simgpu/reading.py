"""How a program reads values with numerics off: for a log it gets "not computed", for a decision an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu import known
from gpututor.simgpu.not_computed import NotComputed
from gpututor.simgpu.session import current
from gpututor.simgpu.special import copy_out
from gpututor.simgpu.tensor import SimTensor


def _is_unknown(t: SimTensor) -> bool:
    return known.host(t) is None and not current.session.remote


def _reading(name: str, what: str, otherwise: Callable[[SimTensor], Any]) -> None:
    """Let the method `name` answer with `otherwise` where the values are not known; the host waits all the same."""
    usual = getattr(SimTensor, name)

    def method(self: SimTensor, *args: Any) -> Any:
        if not _is_unknown(self) or (self.numel() > 1 and name != "tolist"):
            return usual(self, *args)
        copy_out(current.session, what, self)
        return otherwise(self)

    method.__name__ = name
    setattr(SimTensor, name, method)


def _filled(size: torch.Size) -> Any:
    """Nested lists of this size full of `NotComputed`, or a single one."""
    return [_filled(size[1:]) for _ in range(size[0])] if size else NotComputed()


def _deciding(what: str) -> Callable[[SimTensor], Any]:
    return lambda t: known.read(t, what)


def install() -> None:
    """Give the tensor class these methods; with numerics on they are torch's own."""
    _reading("item", "item", lambda t: NotComputed())
    _reading("__float__", "item", lambda t: math.nan)  # float() takes no float that says it isn't real
    _reading("tolist", "tolist", lambda t: _filled(t.form.size))
    _reading("__format__", "print", lambda t: str(NotComputed()) if t.dim() == 0 else repr(t))
    _reading("__bool__", "item", _deciding("a condition"))
    _reading("__int__", "item", _deciding("int()"))
    _reading("__index__", "item", _deciding("an index or a range"))
