"""The number that `.item()` gives for a value that was never computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from gpututor.errors import NumericsOff

WORDS = "not computed"


class NotComputed(float):
    """A float that says it isn't real: it prints as "not computed", and arithmetic with it gives another one.

    A program may log it, sum it and average it. Whatever decides something with it (a comparison, `if`, an index)
    raises `NumericsOff`. Where only C can look (`math.exp`, "%f"), it is NaN.

    >>> loss = NotComputed()
    >>> f"loss {loss:.3f}, mean {(loss + 1) / 2}"
    'loss not computed, mean not computed'
    """

    def __new__(cls, _value: object = None) -> NotComputed:
        """Always the same: there is no value."""
        return super().__new__(cls, "nan")

    def __repr__(self) -> str:
        return WORDS

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return WORDS

    def __reduce__(self) -> tuple[Any, ...]:
        return NotComputed, ()


def _refuse(what: str) -> NoReturn:
    raise NumericsOff(
        f"{what} needs a value that was not computed, since numerics are off; "
        "open the session with numerics=True, or leave out what depends on the value"
    )


def _refusing(what: str) -> Callable[..., Any]:
    return lambda self, *_: _refuse(what)


def _passing(self: NotComputed, *_: object) -> NotComputed:
    return NotComputed()


for _name in "add sub mul truediv floordiv mod pow".split():
    setattr(NotComputed, f"__{_name}__", _passing)
    setattr(NotComputed, f"__r{_name}__", _passing)
for _name in "neg pos abs round".split():
    setattr(NotComputed, f"__{_name}__", _passing)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(NotComputed, f"__{_name}__", _refusing("a comparison"))
for _name, _what in {
    "hash": "a key of a dictionary or set",
    "bool": "a condition",
    "int": "int()",
    "index": "an index or a range",
}.items():
    setattr(NotComputed, f"__{_name}__", _refusing(_what))
for _name in ("trunc", "floor", "ceil"):
    setattr(NotComputed, f"__{_name}__", _refusing(f"{_name}()"))
