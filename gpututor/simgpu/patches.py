"""Seams of torch that offer a device in Python no hook, closed from outside.

Each function closes one; all are applied once, when the device is registered.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.utils.checkpoint
from torch.jit import ScriptModule

from gpututor.model.tape import MODULE_CALL
from gpututor.simgpu import accelerator, known, lazy, memory_calls, reading, streams
from gpututor.simgpu.cards import data_parallel
from gpututor.simgpu.clocks import loaders
from gpututor.simgpu.compiling import compiled
from gpututor.simgpu.graphs import graphs
from gpututor.simgpu.private.modules import (
    FOREACH_TYPES,
    MODULE_APPLY,
    compiled_call_of,
    plain_call_of,
)
from gpututor.simgpu.private.tensors import FIND_RULE
from gpututor.simgpu.session import SCRIPTED, SCRIPTED_NO_GRAD, current, thread
from gpututor.simgpu.special import is_pinned, seen
from gpututor.simgpu.tensor import SimTensor


def keep_parameters_on_move() -> None:
    """`Module.to` swaps a parameter's contents and keeps the object, so ties and optimizers survive."""
    apply_to_all = MODULE_APPLY.now()

    def move(self: torch.nn.Module, fn: Any, recurse: bool = True) -> torch.nn.Module:
        before = torch.__future__.get_swap_module_params_on_conversion()
        if not before and any(isinstance(p, SimTensor) for p in self.parameters()):
            torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            with lazy.set_aside(self, fn):
                moved: torch.nn.Module = apply_to_all(self, fn, recurse)
            return moved
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)

    MODULE_APPLY.put(move)


def count_module_calls() -> None:
    """A module's call takes the host's time. The call itself is torch's own, in as many frames as before."""

    def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        session = current.session
        if session.counts_modules:
            session.account(MODULE_CALL)
            if isinstance(self, ScriptModule):
                return _scripted(plain_call_of(self), args, kwargs)
        return (compiled_call_of(self) or plain_call_of(self))(*args, **kwargs)

    torch.nn.Module.__call__ = call  # type: ignore[method-assign]


def _scripted(call: Any, args: Any, kwargs: Any) -> Any:
    """A TorchScript module's call, its operators accounted as the interpreter's."""
    caller = thread.caller
    if caller is None:
        thread.caller = SCRIPTED if torch.is_grad_enabled() else SCRIPTED_NO_GRAD
    try:
        return call(*args, **kwargs)
    finally:
        thread.caller = caller


# A checkpointed call and its backward keep random states, hooks and contexts: on a computer where our table says 1.6 us
# for a module's call, 16 of them took 48 us each (use_reentrant=True) to 78 us more than the same calls plain, on CPU
# tensors (torch 2.13). That is 30 to 49 calls of modules.
CALLS_OF_A_CHECKPOINT = {True: 30, False: 49}


def count_checkpoints() -> None:
    """Activation checkpointing takes the host's time beyond what it computes again."""
    plain = torch.utils.checkpoint.checkpoint

    @functools.wraps(plain)
    def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
        session = current.session
        if session.counts_modules:
            for _ in range(CALLS_OF_A_CHECKPOINT[bool(kwargs.get("use_reentrant", True))]):
                session.account(MODULE_CALL)
        return plain(function, *args, **kwargs)

    torch.utils.checkpoint.checkpoint = checkpoint


def allow_foreach() -> None:
    """Optimizers take the foreach path by default on CUDA; let them take it here."""
    for supported in FOREACH_TYPES:
        if SimTensor not in supported:
            supported.append(SimTensor)


def answer_for_the_class() -> None:
    """Torch asks before each op whether somebody registered a rule for it and the tensor's class; for ours nobody does.

    Torch keeps the function that it finds at the first op of any such class, so another one's may come too early.
    """
    find = FIND_RULE.now()

    def find_rule(op: Any, kind: type) -> Any:
        return None if kind is SimTensor else find(op, kind)

    FIND_RULE.put(find_rule)


def pin_on_the_host() -> None:
    """Pinned memory is a mark on the storage; it decides whether a copy may overlap."""

    def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if type(self) is SimTensor:
            raise RuntimeError("cannot pin a tensor of the simulated GPU; only dense CPU tensors can be pinned")
        if is_pinned(self):
            return self
        pinned = self.clone()
        pinned.untyped_storage()._gpututor_pinned = True  # type: ignore[attr-defined]
        return pinned

    def pinned(self: torch.Tensor, device: Any = None) -> bool:
        return type(self) is not SimTensor and is_pinned(self)

    torch.Tensor.pin_memory = pin_memory  # type: ignore[method-assign, assignment]
    torch.Tensor.is_pinned = pinned  # type: ignore[method-assign, assignment]


def _seen_by_host(t: SimTensor, what: str) -> torch.Tensor:
    """The values, for showing; the host waits for the card as it would for CUDA."""
    return seen(current.session, what, t, what).detach()


def show_values() -> None:
    """repr, format and tolist without thirty device ops each."""

    def shown(self: SimTensor, **_: Any) -> str:
        if known.host(self) is None and not current.session.remote:
            body = f"..., size={tuple(self.form.size)}, numerics off"
        else:
            body = repr(_seen_by_host(self, "print"))[len("tensor(") : -1]
        grad = self.grad_fn
        tail = (
            f", grad_fn=<{type(grad).__name__}>"
            if grad is not None
            else ", requires_grad=True"
            if self.requires_grad
            else ""
        )
        head = "Parameter containing:\n" if isinstance(self, torch.nn.Parameter) else ""
        return f"{head}tensor({body}, device='{self.device}'{tail})"

    def formatted(self: SimTensor, spec: str) -> str:
        return format(_seen_by_host(self, "print").item(), spec) if self.dim() == 0 else repr(self)

    def refuse_numpy(self: SimTensor, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )

    for name, method in {
        "__repr__": shown,
        "__format__": formatted,
        "numpy": refuse_numpy,
        "__array__": refuse_numpy,
        "tolist": lambda self: _seen_by_host(self, "tolist").tolist(),
    }.items():
        setattr(SimTensor, name, method)


def serve_accelerator_calls() -> None:
    """`torch.accelerator` and the device-free Stream and Event ask C++, which knows no Python device."""
    torch.accelerator.synchronize = streams.synchronize
    memory_calls.install()
    torch.accelerator.current_stream = streams.current_stream  # type: ignore[assignment]
    torch.Event = streams.Event  # type: ignore[assignment, misc]
    torch.Stream = streams.Stream  # type: ignore[assignment, misc]


def apply_all() -> None:
    """Close every seam."""
    keep_parameters_on_move()
    count_module_calls()
    count_checkpoints()
    lazy.make_on_the_card()
    allow_foreach()
    answer_for_the_class()
    pin_on_the_host()
    show_values()
    reading.install()
    data_parallel.install()
    serve_accelerator_calls()
    accelerator.serve()
    loaders.mark_loaders()
    compiled.stand_in()
    graphs.refuse_uncapturable_steps()
