"""Softmax of float16 with a float32 result: one kernel on CUDA, which reads the halves itself.

Torch takes that way for CUDA alone, and any other device first makes a float32 copy; for a language model's logits
that copy is the largest tensor of the step. bfloat16 is copied on CUDA too.
Source: torch, aten/src/ATen/native/SoftMax.cpp, softmax and log_softmax.
"""

from __future__ import annotations

from typing import Any

import torch

from gpututor.simgpu.forms import Form, form_of
from gpututor.simgpu.memory import Block
from gpututor.simgpu.plans import Plan, cost_of, short_name
from gpututor.simgpu.private import operators
from gpututor.simgpu.session import Session, phase
from gpututor.simgpu.special import special
from gpututor.simgpu.tensor import SimTensor, new

aten = torch.ops.aten
WHOLE = {aten.softmax.int: operators.SOFTMAX, aten.log_softmax.int: operators.LOG_SOFTMAX}
"""For each op that a program calls the one that does it whole."""

_plans: dict[tuple[Any, ...], tuple[Plan, Form]] = {}


def reads_halves(op: Any, args: tuple[Any, ...], dtype: Any) -> bool:
    """Whether CUDA would run this call as one kernel."""
    return op in WHOLE and dtype is torch.float32 and type(args[0]) is SimTensor and args[0].form.dtype is torch.float16


@special(*WHOLE.values())
def forward(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The float32 softmax of halves, without a float32 copy of them on the card."""
    x, dim, widens = args
    if not widens:
        return NotImplemented
    return one_kernel(session, op, args, torch.float32, lambda: op(x.host.float(), dim, False), (x,))


@special(operators.SOFTMAX_BACKWARD, operators.LOG_SOFTMAX_BACKWARD)
def backward(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Its gradient, in halves."""
    grad, out, dim, dtype = args
    if dtype is grad.dtype:
        return NotImplemented
    return one_kernel(session, op, args, dtype, lambda: op(grad.host, out.host, dim, grad.dtype).to(dtype), (grad, out))


def on_the_host(op: Any) -> Any:
    """What computes this op on the CPU, which has no softmax from halves to float32; any other op is its own."""
    if op in WHOLE.values():
        return lambda x, dim, widens: op(x.float() if widens else x, dim, False)
    if op in (operators.SOFTMAX_BACKWARD, operators.LOG_SOFTMAX_BACKWARD):
        return lambda grad, out, dim, dtype: op(grad, out, dim, grad.dtype).to(dtype)
    return op


def one_kernel(session: Session, op: Any, args: tuple[Any, ...], dtype: Any, compute: Any, reads: Any) -> SimTensor:
    """The result of `compute` in `dtype`, shaped like the first argument, accounted as one op."""
    source: Form = args[0].form
    key = (op, source, *(a.form if type(a) is SimTensor else a for a in args[1:]))
    known = _plans.get(key)
    if known is None:
        index = source.device.index
        form = form_of(source.size, torch.empty(source.size, device="meta").stride(), dtype, index)
        plan = Plan(short_name(op))
        plan.cost, plan.card = cost_of(op, args, {}, (form,), view=False), index
        known = _plans[key] = (plan, form)
    plan, form = known
    if plan.card != session.card:
        session.use_card(plan.card)
    p = phase()
    session.account(plan.entries[p] or plan.entry(p))
    host = compute() if session.numerics and all(t.host is not None for t in reads) else None
    return new(form, host, Block(form.n_bytes, session.memories[plan.card]))
