"""Hear of backward passes and optimizer steps without a word from the loop.

Optimizers have hooks of torch's own. For backward passes `torch.autograd.backward` is wrapped while a measurement
goes on: `loss.backward()` calls it by that name. A GradScaler's step belongs to the optimizer, with its test for
infinities. Only the thread that began the measurement is heard.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpututor.measure.parts import Part


@contextmanager
def heard(enter: Callable[[Part], None], leave: Callable[[], None]) -> Iterator[None]:
    """A block in which `enter(part)` and `leave()` are called around backward passes and optimizer steps."""
    import torch
    from torch.amp import grad_scaler
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    me = threading.get_ident()

    def ours() -> bool:
        return threading.get_ident() == me

    def around(part: Part, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def called(*args: Any, **kwargs: Any) -> Any:
            if not ours():
                return call(*args, **kwargs)
            enter(part)
            try:
                return call(*args, **kwargs)
            finally:
                leave()

        return called

    in_step: set[int] = set()  # optimizers whose step is on its way: a step that raises has no end

    def before(optimizer: Any, *_: Any) -> None:
        if ours():
            if id(optimizer) in in_step:  # the step before raised
                leave()
            in_step.add(id(optimizer))
            enter(Part.OPTIMIZER)

    def after(optimizer: Any, *_: Any) -> None:
        if ours() and id(optimizer) in in_step:
            in_step.remove(id(optimizer))
            leave()

    handles = register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)
    put_back = [
        _put(torch.autograd, "backward", around(Part.BACKWARD, torch.autograd.backward)),
        _put(grad_scaler.GradScaler, "step", around(Part.OPTIMIZER, grad_scaler.GradScaler.step)),
    ]
    try:
        yield
    finally:
        for undo in put_back:
            undo()
        for handle in handles:
            handle.remove()


def _put(owner: Any, name: str, value: Any) -> Callable[[], None]:
    """Replace an attribute; the call puts the old one back, unless somebody else has replaced it since."""
    before = getattr(owner, name)
    setattr(owner, name, value)

    def undo() -> None:
        if getattr(owner, name) is value:
            setattr(owner, name, before)

    return undo
