"""cuDNN's search for the quickest algorithm, `torch.backends.cudnn.benchmark`: paid for each new shape.

With the switch on, the first call with a shape runs every algorithm that cuDNN would try, and takes the
quickest from then on. The cost model takes the quickest anyway, so here the search has a price and brings nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from gpututor.model.host import PHASES
from gpututor.model.kernels import Conv
from gpututor.model.spec import HostKind
from gpututor.model.tape import HostWork, TapeOp
from gpututor.simgpu.session import current
from gpututor.timeline import Activity

NAME = "cudnn.benchmark"
TRIED, RUNS = 10, 2
"""Algorithms that are tried, torch.backends.cudnn.benchmark_limit's default, and how often each runs: once to warm up
and once to be timed. Source: pytorch/pytorch aten/src/ATen/native/cudnn/Conv_v8.cpp (CUDNN_FIND_SAMPLE_ONCE) and
NVIDIA/cudnn-frontend, time_sorted_plan."""

SEARCH_NS = 45_000_000
"""The host's part of one search: plans, workspaces, waits. Source: biubug6/Pytorch_Retinaface issue 4: 1.5 to 2.6 s for
a forward pass of RetinaFace with a new size, 6 ms with a known one; its 33 different convolutions that cuDNN runs make
that 45 to 79 ms each. modal-labs/modal-examples pull request 161: 6 s of a start are the searches of Stable Diffusion.
An order of magnitude: both are years old."""


def is_on() -> bool:
    """Whether the program has switched the search on."""
    return bool(torch.backends.cudnn.benchmark)


def search(plan: Any, kernels: tuple[Any, ...], phase: int) -> None:
    """Account the search for the convolutions of an op that the running session hasn't called with these shapes yet."""
    session = current.session
    if plan in session.tuned or session.remote is not None:
        return
    session.tuned.add(plan)
    for kernel in kernels:
        if not isinstance(kernel, Conv):
            continue
        session.account(HostWork(Activity.STARTUP, NAME, SEARCH_NS))
        if session.watch is None or not session.watch.listeners:  # a compiled region takes ops for its own
            trial = replace(kernel, name=f"{NAME} {kernel.name}", trials=TRIED * RUNS)
            session.account(TapeOp(NAME, HostKind.CUDNN, PHASES[phase], (trial,)))
