"""Saving, loading and copying of device tensors, as CUDA does it: files that load anywhere, with `map_location`.

A saved tensor is its host storage under the location "simgpu:0", so a file can be read on a machine without
gpututor, and a file written on CUDA can be read onto the simulated GPU. Storages stay shared, so views and tied
weights stay what they are.
"""

from __future__ import annotations

import copy
import functools
import os
from collections import OrderedDict
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.serialization

from gpututor.simgpu.forms import DEVICE_NAME
from gpututor.simgpu.private.asked import IS_BUFFER, IS_PARAMETER
from gpututor.simgpu.private.files import (
    REBUILD_SEAMS,
    allowed_globals,
    rebuild_parameter,
    rebuild_parameter_with_state,
)
from gpututor.simgpu.session import current
from gpututor.simgpu.special import copy_in, seen
from gpututor.simgpu.streams import card_of
from gpututor.simgpu.tensor import SimTensor, wrap

PRIORITY = 5
"""Torch asks its own tagger for CPU storages at 10, and would take ours for one."""
HERE = frozenset({DEVICE_NAME})
"""Device types of a saved location that mean the simulated GPU; "cuda" too, while CUDA's names lead here."""
OURS = frozenset({"form", "host", "block", IS_PARAMETER, IS_BUFFER})
"""What a device tensor's own dictionary holds beside what a program put there."""

# --- files ------------------------------------------------------------------------------------------------------


def location(storage: Any) -> str | None:
    """Where a storage's tensor lives, None if not on the device."""
    return getattr(storage, "_gpututor_location", None)


def restore(storage: Any, where: str) -> Any:
    """Let what is rebuilt from this storage live on the device, if that is where it belongs; else None."""
    kind, _, number = where.partition(":")
    if kind not in HERE:
        return None
    index = card_of(int(number) if number else None)
    whole = torch.empty(0, dtype=torch.uint8).set_(storage)
    copy_in(current.session, "load", whole, whole.numel(), False, index)
    # the block alone is kept: a tensor would keep its own storage alive
    storage._gpututor_block, storage._gpututor_index = wrap(whole, index=index).block, index
    return storage


def placed(storage: Any, host: torch.Tensor) -> torch.Tensor:
    """The rebuilt tensor, on the device if its storage belongs there."""
    kept: Any = host.untyped_storage()  # the storage itself, with what `restore` left on it
    block = getattr(kept, "_gpututor_block", None)
    if block is None:
        return host
    twin = wrap(host.detach(), block, kept._gpututor_index)
    if not (current.session.numerics or twin.form.kept):
        twin.host = None
    return twin.requires_grad_(host.requires_grad)


def place_what_is_rebuilt() -> None:
    """Torch builds a tensor from its storage in two functions; both must ask where it belongs."""
    for place in REBUILD_SEAMS:
        before = place.now()

        @functools.wraps(before)
        def rebuilt(storage: Any, *args: Any, before: Any = before, **kwargs: Any) -> torch.Tensor:
            return placed(storage, before(storage, *args, **kwargs))

        place.put(rebuilt)
    allowed_globals.cache_clear()  # holds the functions themselves


def reduced(self: SimTensor, protocol: Any) -> tuple[Any, ...]:
    """What pickle keeps of a device tensor: the same as of a CUDA tensor."""
    if isinstance(self, torch.nn.Parameter):
        told = {name: value for name, value in self.__dict__.items() if name not in OURS}
        parts = (self.detach(), self.requires_grad, OrderedDict[int, Any]())
        if told:
            return rebuild_parameter_with_state, (*parts, told)
        return rebuild_parameter, parts
    host: Any = seen(current.session, "save", self, "saving").detach()
    host = host.resolve_conj().resolve_neg()
    host.untyped_storage()._gpututor_location = str(self.form.device)
    function, args = host.__reduce_ex__(protocol)
    return function, (*args[:4], self.requires_grad, *args[5:])


# --- copies -----------------------------------------------------------------------------------------------------


def deepcopied(self: SimTensor, memo: dict[int, Any]) -> Any:
    """`copy.deepcopy` of a leaf: a clone on the device, with its gradient and what the program noted on it.

    Raises:
        RuntimeError: the tensor has a history, which has no copy.
    """
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment; "
            "copy it with x.detach().clone()"
        )
    twin = self.detach().clone()
    if isinstance(self, torch.nn.Parameter):
        twin = torch.nn.Parameter(twin, self.requires_grad)
    memo[id(self)] = twin.requires_grad_(self.requires_grad)
    if self.grad is not None:
        twin.grad = copy.deepcopy(self.grad, memo)
    for name, value in self.__dict__.items():
        if name not in OURS:
            setattr(twin, name, copy.deepcopy(value, memo))
    return twin


# --- other processes --------------------------------------------------------------------------------------------


def refuse_to_send(tensor: SimTensor) -> Any:
    """A device tensor on its way to another process."""
    raise RuntimeError(
        f"a tensor on {tensor.form.device} can't be sent to another process: the simulated GPU lives in this one; "
        f"send x.cpu() and move it to '{DEVICE_NAME}' over there"
    )


class Forked:
    """Stands for the session in a forked process, where the device must not be used, as with CUDA."""

    counts_modules = False  # a loader's worker may have modules of its own, on the CPU

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            "Cannot re-initialize the simulated GPU in forked subprocess: keep the work of a DataLoader's workers on "
            "the CPU, or start the process with the 'spawn' method"
        )


def in_bad_fork() -> bool:
    """Whether this process was forked from one that has the device."""
    return isinstance(current.session, Forked)


def _leave_device_behind() -> None:
    current.session = Forked()  # type: ignore[assignment]


def register_files() -> None:
    """Teach torch and pickle to save, load, copy and refuse device tensors."""
    torch.serialization.register_package(PRIORITY, location, restore)
    place_what_is_rebuilt()
    SimTensor.__reduce_ex__ = reduced  # type: ignore[assignment, method-assign]
    SimTensor.__deepcopy__ = deepcopied  # type: ignore[method-assign, assignment]
    ForkingPickler.register(SimTensor, refuse_to_send)
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(after_in_child=_leave_device_behind)
