"""How long the host is busy with one operator, by kind of operator and by who calls it.

Python calls each operator of a forward pass; autograd's engine calls those of a backward
pass without Python; an optimizer calls its own in a tight loop. The amounts are
microseconds in data/hosts.toml, measured in recorded traces and set to published speeds.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.cards import Host
from gpututor.errors import DataFileError, KernelSpecError
from gpututor.model.spec import HostKind

PHASES = (
    "forward",
    "no_grad",
    "backward",
    "optimizer",
    "compiled",
    "compiled_backward",
    "paced",
    "scripted",
    "scripted_no_grad",
)
COMPILED = frozenset({"compiled", "compiled_backward"})

# TorchScript's interpreter calls the same operators without Python between them; its own time is taken as nothing, so
# what it saves is shown too large rather than too small. Source: torch 2.13 on the CPU where we compared, 40 layers on
# tensors of a few numbers: forward 1.3 to 2 times as fast as eager, forward and backward together 0.97 to 1.2 times.
SCRIPTED = {"scripted": "forward", "scripted_no_grad": "no_grad"}

# Code that torch.compile made calls a kernel of its own through Triton's launcher, from Python: 6.8 us without
# arguments and 9.1 with 19 on a GB200 host, of which the driver's launch is 3.0. So 1.27 to 1.83 launches more; 1.5
# taken. A call of the compiled function takes 44 us with one kernel in it, guards and all: 12 launches more. In
# launches, so that a slower host is slower here too: an assumption. Source: meta-pytorch/tritonbench pull request 1017.
LAUNCHER_LAUNCHES, COMPILED_CALL_LAUNCHES = 1.5, 12.0

# What must stand under `costs` of each host.
COST_NAMES = (
    "python",  # the interpreter between two operators of a model
    "python_module",  # a module's call, on top
    "python_view",  # the same before an operator that only changes shape
    "python_optimizer",  # the same inside an optimizer's loop over parameters
    "python_list",  # an optimizer's loop that collects parameters, for each launch they need
    "launch",  # the driver's launch call
    "autograd",  # bookkeeping for a later backward pass; part of the amounts below, left out under no_grad
    "engine",  # autograd's engine around one operator
    "accumulate",  # storing one parameter's gradient
    "view",
    "light",
    "gemm",
    "cudnn",
    "norm",
    "rnn",
    "attention",
    "foreach",
    "foreach_launch",  # packing the pointers for one launch of a list operator
    "copy",
    "cast",
    "sync",
    "backward_light",
    "backward_gemm",
    "backward_cudnn",
    "backward_norm",
    "backward_rnn",
    "backward_attention",
    "optimizer_light",
    "copy_latency",  # of a copy between host and card, on the link
)
OWN_IN_BACKWARD = frozenset(
    {HostKind.LIGHT, HostKind.GEMM, HostKind.CUDNN, HostKind.NORM, HostKind.RNN, HostKind.ATTENTION}
)
LIBRARY = frozenset({HostKind.GEMM, HostKind.CUDNN, HostKind.RNN, HostKind.ATTENTION})


@dataclass(frozen=True, slots=True)
class HostCost:
    """Nanoseconds of the host for one operator: Python before it, the framework in it, and each launch."""

    python_ns: int
    dispatch_ns: int
    launch_ns: int


def op_host(kind: HostKind, phase: str, n_launches: int, host: Host) -> HostCost:
    """What one operator of this kind costs the host; the launches come on top, each `launch_ns`.

    Raises:
        KernelSpecError: `phase` is not one of `PHASES`.
        DataFileError: the host's table lacks an amount.
    """
    if phase not in PHASES:
        raise KernelSpecError(f"an operator runs in phase {phase!r}; known phases: {', '.join(PHASES)}")
    if phase == "paced":  # the host is the real one: only the driver's call, which isn't there, is charged
        return HostCost(0, 0, _ns(amount_us(host, "launch")))
    python_us = dispatch_us = 0.0
    called_as = SCRIPTED.get(phase, phase)
    if kind is HostKind.CALL:
        dispatch_us = amount_us(host, "launch") * COMPILED_CALL_LAUNCHES
    elif phase in COMPILED:
        dispatch_us = _compiled_us(kind, host)
    else:
        python_us = 0.0 if phase in SCRIPTED else _python_us(kind, phase, n_launches, host)
        dispatch_us = _dispatch_us(kind, called_as, host)
        if kind is HostKind.FOREACH:
            dispatch_us += amount_us(host, "foreach_launch") * n_launches
    return HostCost(_ns(python_us), _ns(dispatch_us), _ns(amount_us(host, "launch")))


def _compiled_us(kind: HostKind, host: Host) -> float:
    """A step of compiled code: Triton's launcher for its own kernels, a library's call without autograd for others."""
    if kind in (HostKind.FREE, HostKind.VIEW):
        return 0.0
    if kind in LIBRARY:
        return amount_us(host, f"backward_{kind.value}")  # the recorded library call alone, engine aside
    return amount_us(host, "launch") * LAUNCHER_LAUNCHES


def _python_us(kind: HostKind, phase: str, n_launches: int, host: Host) -> float:
    if phase == "backward" or kind is HostKind.FREE:
        return 0.0
    if phase == "optimizer":
        if kind is HostKind.FOREACH:
            return amount_us(host, "python_list") * max(1, n_launches)
        return amount_us(host, "python_optimizer")
    return amount_us(host, "python_view" if kind is HostKind.VIEW else "python")


def _dispatch_us(kind: HostKind, phase: str, host: Host) -> float:
    if kind is HostKind.FREE:  # in a backward pass autograd's own detach marks a parameter's finished gradient
        return amount_us(host, "accumulate") if phase == "backward" else 0.0
    if kind is HostKind.VIEW:
        return amount_us(host, "view")
    if phase == "backward" and kind in OWN_IN_BACKWARD:
        return amount_us(host, "engine") + amount_us(host, f"backward_{kind.value}")
    if phase == "backward":
        return amount_us(host, "engine") + amount_us(host, kind.value)
    if phase == "optimizer" and kind in (HostKind.LIGHT, HostKind.COPY, HostKind.CAST):
        return amount_us(host, "optimizer_light")
    recorded_us = amount_us(host, kind.value)
    return recorded_us if phase == "forward" else max(0.0, recorded_us - amount_us(host, "autograd"))


def module_ns(host: Host) -> int:
    """Nanoseconds of a module's call in Python, without what it calls."""
    return _ns(amount_us(host, "python_module"))


def sync_ns(host: Host) -> int:
    """Nanoseconds from the GPU being done until a waiting host thread goes on."""
    return _ns(host.sync_us)


def amount_us(host: Host, name: str) -> float:
    """One amount of the host's table, in microseconds.

    Raises:
        DataFileError: the table lacks it.
    """
    try:
        return host.costs[name]
    except KeyError:
        raise DataFileError(
            f'data/hosts.toml, {host.name}, costs: "{name}" is missing; it takes {len(COST_NAMES)} amounts, '
            "which gpututor/model/host.py lists"
        ) from None


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)
