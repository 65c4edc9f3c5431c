"""Arguments of an op as parts of a key: tensors by their forms, numbers as far as they can decide a shape.

One key is built for every op that runs, so there is no call for each item of a list.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import torch

from gpututor.simgpu.session import thread
from gpututor.simgpu.tensor import SimTensor

YES, NO = object(), object()  # True == 1 with the same hash, and they give other dtypes
INTS, BOOLS, FLOATS = {int}, {bool}, {float}
THEMSELVES = frozenset({type(None), int, str, torch.dtype, torch.layout, torch.memory_format})
CONSTANT = THEMSELVES | {bool, torch.device}
"""Kinds of arguments whose value is the same wherever the key is."""
_form = attrgetter("form")


def key_of(a: Any) -> Any:
    """An argument as a part of the key."""
    kind = type(a)
    if kind is SimTensor:
        return a.form
    if kind in THEMSELVES:
        return a
    if kind is float:
        return float
    if kind is bool:
        return YES if a else NO
    if kind is list or kind is tuple:
        return key_of_list(a)
    if kind is torch.device and a.index is None:
        return (a, thread.card)  # "simgpu" is the current card
    if isinstance(a, torch.Tensor):
        return (a.size(), a.dtype, a.device)
    return a


def quick_key(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of arguments among which each list holds whole numbers, or booleans, by the op's schema."""
    parts: list[Any] = []
    add = parts.append
    for a in args:
        kind = type(a)
        if kind is SimTensor:
            add(a.form)
        elif kind in THEMSELVES:
            add(a)
        elif kind is list:
            add(tuple(a))
        else:
            add(key_of(a))
    return tuple(parts)


def careful_key(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of any arguments."""
    return tuple([a.form if type(a) is SimTensor else a if a is None or type(a) is int else key_of(a) for a in args])


def key_of_list(items: Any) -> tuple[Any, ...]:
    """A list as a part of the key; an optimizer's lists hold hundreds of tensors or numbers."""
    if not items:
        return ()
    kind = type(items[0])
    if kind is int and (type(items[-1]) is int if len(items) < 3 else set(map(type, items)) == INTS):
        return tuple(items)
    if kind is SimTensor:
        try:
            return tuple(map(_form, items))
        except AttributeError:  # another kind of tensor among them
            pass
    elif kind is bool and set(map(type, items)) == BOOLS:
        return (YES, *items)
    elif kind is float and set(map(type, items)) == FLOATS:
        return (float, len(items), NO)
    return tuple([key_of(x) for x in items])
