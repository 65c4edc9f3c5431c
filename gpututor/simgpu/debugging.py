"""What torch's debugging switches cost: anomaly mode, and deterministic algorithms.

Anomaly mode does two things. Each operator of the forward pass that will have a backward one keeps the text of
Python's stack; and after each backward one every gradient is searched for NaN, whose answer the host waits for. The
second is torch's own code here as on CUDA (torch/csrc/autograd/engine.cpp, `isnan(output)._is_any_true().item()`), so
its kernels and waits are accounted by themselves. The first is Python, whose time the virtual clock must be told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch.fx.traceback

from gpututor.model.tape import MODULE_CALL
from gpututor.simgpu.session import Session, current, thread

CALLS_OF_A_FRAME = 2
"""Keeping a stack as text, for each of its frames, in calls of modules.

Source: on a computer where our table says 1.6 us for a module's call, a stack of 13 frames in nested modules takes
36 us of processor time (Python 3.11, `traceback` as torch calls it), 2.8 us a frame; in a forward pass of 20 layers
with anomaly mode it is 3.5 (torch 2.13, CPU tensors).
"""


def frames_of_the_program(outermost: FrameType | None) -> int:
    """Frames of Python from this one's caller up to `outermost`, which began the session, or to the last."""
    frame: FrameType | None = sys._getframe(1)
    n = 0
    while frame is not None and frame is not outermost:
        frame, n = frame.f_back, n + 1
    return n


def account_kept_stacks() -> None:
    """Let the text of a stack, which anomaly mode asks for at each forward operator, take the host's time."""
    format_stack: Callable[[], list[str]] = torch.fx.traceback.format_stack

    def kept() -> list[str]:
        session = current.session
        if not (Session.is_running() and session.counts_modules and torch.is_anomaly_enabled()):
            return format_stack()
        if thread.inside_whole:  # the CPU's own graph inside an op that CUDA runs as one
            return []
        for _ in range(CALLS_OF_A_FRAME * frames_of_the_program(session.opened_in)):
            session.account(MODULE_CALL)
        return ["  not kept: the simulated GPU accounts for the stack and leaves its text out"]

    torch.fx.traceback.format_stack = kept


def found_no_nan(t: Any) -> bool:
    """Whether an unknown answer is that of anomaly mode's search, which in a healthy run is no."""
    return t.dtype is torch.bool and torch.is_anomaly_enabled()
