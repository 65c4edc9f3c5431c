"""Torch's autograd engine made safe for a device in Python.

Backward runs on the caller's thread. An error inside it (a full card, a failing hook, Ctrl-C) must
not reach torch's stream guard, which asks `DeviceGuard.type_` from C++ that may not throw: with a
Python error pending that would end the process. So the guard first takes the pending error away
and keeps it, and the wrapper around the engine raises it again.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from gpututor.model.exchange import Threads
from gpututor.simgpu.private.device import DEVICE_TYPE, ENGINE, ENGINE_SEAMS, DeviceGuard
from gpututor.simgpu.session import BACKWARD, OPTIMIZER, current, thread

_raise_pending = ctypes.pythonapi["Py_IsInitialized"]  # a function object of our own
"""Any call through `pythonapi` raises the error that is pending in the interpreter."""
_raise_pending.argtypes, _raise_pending.restype = (), None  # thousands of calls a step, quicker without an answer


class Guard(DeviceGuard):  # type: ignore[misc]
    """Torch's device guard for the simulated device."""

    def type_(self) -> Any:
        """The device type; also called while an error is on its way up."""
        if thread.backward_depth:
            try:
                _raise_pending()
            except BaseException as error:
                thread.backward_error = error
        return DEVICE_TYPE


def wrap_engine() -> None:
    """Make every backward run on its caller's thread and hand errors over whole."""
    engine = ENGINE_SEAMS[0].now()

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        thread.backward_depth += 1
        caller, thread.caller = thread.caller, BACKWARD
        threads = thread.backward_depth == 1 and current.session.drives_cards
        if threads:
            current.session.account(Threads(tuple(range(current.session.machine.n_cards))))
        try:
            with torch.autograd.set_multithreading_enabled(False):
                return engine(*args, **kwargs)
        except BaseException:
            error, thread.backward_error = thread.backward_error, None
            if error is not None:
                raise error from None
            raise
        finally:
            thread.backward_depth -= 1
            thread.caller = caller
            thread.backward_error = None
            if threads:
                current.session.account(Threads(()))
            watch = current.session.watch
            if watch is not None and not thread.backward_depth:
                watch.backward_done()

    for place in ENGINE_SEAMS:
        place.put(run_backward)


def gradients(outs: list[torch.Tensor], grads: list[torch.Tensor], inputs: list[torch.Tensor]) -> Any:
    """Gradients of CPU tensors inside a backward pass, None for an input that has no part in `outs`.

    The engine itself, without the checks of torch.autograd.grad, which cost more than a small layer's backward.
    """
    return ENGINE.run_backward(tuple(outs), tuple(grads), True, False, tuple(inputs), True, accumulate_grad=False)


def watch_optimizers() -> None:
    """Note while an optimizer's step runs, so that its ops are accounted as such."""
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    def before(*_: Any) -> None:
        if not thread.backward_depth:  # an optimizer that runs in a hook of backward is autograd's part
            thread.caller = OPTIMIZER

    def after(*_: Any) -> None:
        if not thread.backward_depth:
            thread.caller = None

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
