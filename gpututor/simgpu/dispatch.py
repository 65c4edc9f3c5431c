"""The hot path: every op on the device comes through `run`, which accounts it and computes it on the CPU.

A look-up for the op and one for its plan: the key is the forms of its tensors and its whole numbers; numbers with a
fraction change every step (learning rates) and decide no shape, so they are left out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import is_grad_enabled, is_inference_mode_enabled

from gpututor.model import constants
from gpututor.simgpu import big, known, odd, rng, sparse
from gpututor.simgpu.forms import DEVICE_NAME, Form, form_of
from gpututor.simgpu.keys import CONSTANT, key_of
from gpututor.simgpu.memory import block_of
from gpututor.simgpu.plans import OpPlans, Plan, cost_of, short_name
from gpututor.simgpu.precision.half_products import SUMMED
from gpututor.simgpu.private.tensors import has_kernel, schema_of
from gpututor.simgpu.session import FORWARD, NO_GRAD, Session, current, phase, thread
from gpututor.simgpu.special import SPECIAL, refuse_mixed_devices
from gpututor.simgpu.streams import card_of
from gpututor.simgpu.tensor import SimTensor, become, host_of, new, new_each

META = torch.device("meta")
DETACH = torch.ops.aten.detach.default

plans: tuple[dict[int, OpPlans], dict[int, OpPlans]] = ({}, {})
"""What is known of each op by its address, since its own hash is Python code of torch's; numerics off, and on."""
constants.ON_CHANGE += [table.clear for table in plans]  # a plan remembers the kernels that followed from the constants
Place = tuple[OpPlans, Any]  # where a plan is kept, and under which key


def run(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Account `op` on the running session and give its result."""
    session = current.session
    if op is DETACH and (plan := args[0].form.detached) is not None:
        return detached(session, plan, args[0])
    numerics = session.numerics
    of_op = plans[numerics].get(id(op))
    if of_op is None:
        of_op = plans[numerics].setdefault(id(op), OpPlans(op))
    if len(args) == 1 and not kwargs and type(args[0]) is SimTensor:
        key: Any = args[0].form
    else:
        key = of_op.key_of(args)
        if kwargs:
            key = (*key, *kwargs, *map(key_of, kwargs.values()))
    plan = of_op.get(key)
    if plan is None:
        return first_time((of_op, key), op, args, kwargs or {})
    if plan.card != session.card:
        session.use_card(plan.card)
    p = thread.caller
    if p is None:
        p = FORWARD if is_grad_enabled() else NO_GRAD
    session.account(plan.entries[p] or plan.entry(p))
    if numerics:
        out = on_cpu(of_op, plan, args, kwargs)
    else:
        out = known.compute(op, plan.compute, args, kwargs or {}, plan.named) if plan.watched else None
    if plan.inplace:
        return None if plan.returns_nothing else args[0]
    form = plan.form
    if form is None:
        return wrap_out(plan, out, args)
    alias = plan.alias
    if alias is None:
        return new(form, out, block_of(form.n_bytes, session.memories[plan.card]))
    return view_of(args[alias], form, out)


def view_of(base: Any, form: Form, out: Any) -> SimTensor:
    """A tensor that shares the memory of another; one of a plain tensor is plain, under inference_mode as well."""
    if is_inference_mode_enabled() and not base.is_inference():
        with torch.inference_mode(False):
            return new(form, out, base.block)
    return new(form, out, base.block)


def detached(session: Session, plan: Plan, t: SimTensor) -> SimTensor:
    """The same tensor without history; its values need no new tensor on the host."""
    if plan.card != session.card:
        session.use_card(plan.card)
    p = thread.caller
    if p is None:
        p = FORWARD if is_grad_enabled() else NO_GRAD
    session.account(plan.entries[p] or plan.entry(p))
    block = t.block
    return new(t.form, None if block.lost else t.host, block)


def on_cpu(of_op: OpPlans, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """What the CPU makes of the tensors' values."""
    if of_op.whole_lists:
        hosts = [a.host if type(a) is SimTensor else a for a in args]
    else:
        hosts = [a.host if type(a) is SimTensor else a if a is None or type(a) is int else on_host(a) for a in args]
    return plan.compute(*hosts, **(plan.named or host_kwargs(kwargs))) if kwargs else plan.compute(*hosts)


def on_host(a: Any) -> Any:
    """An argument with simulated tensors replaced by their values."""
    kind = type(a)
    if kind is SimTensor:
        return host_of(a)
    if kind is list or kind is tuple:
        if a and type(a[0]) in known.NUMBERS:  # torch's lists hold either numbers or tensors
            return a
        return [x.host if type(x) is SimTensor and x.host is not None else on_host(x) for x in a]
    return a


def host_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Keyword arguments for the CPU op: the device becomes the CPU."""
    if not kwargs:
        return {}
    out = {name: on_host(value) for name, value in kwargs.items()}
    if out.get("device") is not None:
        out["device"] = known.CPU
    return out


def wrap_out(plan: Plan, out: Any, args: tuple[Any, ...]) -> Any:
    """The op's results as simulated tensors of the planned forms."""
    if plan.outs is None:
        return out
    hosts = (out,) if plan.single else out or (None,) * len(plan.outs)
    if plan.alias is None:
        made: Any = new_each(plan.outs, hosts, current.session.memories[plan.card])
    else:
        base = args[plan.alias]
        made = [
            view_of(base, form, host) if form is not None else host for form, host in zip(plan.outs, hosts, strict=True)
        ]
    return made[0] if plan.single else tuple(made)


# --- an op seen for the first time with these forms -------------------------------------------------------------


def first_time(place: Place | None, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the op the careful way and remember what can be remembered."""
    session = current.session
    if place is not None and rng.SEEDED in op.tags and not rng.in_step_with_host(args, kwargs):
        return rng.drawn(first_time, None, op, args, kwargs)
    special = SPECIAL.get(op)
    if special is not None:
        done = special(session, op, args, kwargs)
        if done is not NotImplemented:
            return done
    if sparse.among(args):
        return sparse.run(op, args, kwargs)
    refuse_mixed_devices(op, args)
    if torch.Tag.inplace_view in op.tags or op in RESIZING:
        return reshape_in_place(op, args, kwargs)
    out_names = [a.name for a in schema_of(op).arguments if a.is_out and a.name in kwargs]
    if out_names:
        return into_out(op, args, kwargs, out_names)
    if has_kernel(op.name(), "CompositeImplicitAutograd") and not has_kernel(op.name(), "CPU"):
        parts = op.decompose(*args, **kwargs)  # inference_mode hands composite ops over whole
        if parts is not NotImplemented:
            return parts
    return compute_and_plan(place, op, args, kwargs)


RESIZING = (torch.ops.aten.resize_.default, torch.ops.aten.set_.source_Tensor)
SECRET_VIEWS = frozenset({"aten::_unsafe_view"})  # shares memory, though its schema doesn't say so: matmul ends with it


def compute_and_plan(place: Place | None, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute on the CPU (or on meta tensors), account, and keep the plan at its `place` unless that is None."""
    session = current.session
    schema = schema_of(op)
    plan = Plan(short_name(op), op)
    plan.inplace = schema.is_mutable and schema.name.endswith("_")
    plan.returns_nothing = not schema.returns
    view = any(a.alias_info and not a.alias_info.is_write for a in schema.arguments) or schema.name in SECRET_VIEWS
    plan.alias = 0 if view and args and type(args[0]) is SimTensor else None
    plan.card = device_index(args, kwargs)
    if session.numerics:
        big.refuse_what_cannot_fit(op, args, kwargs, session.memories[plan.card])
        compute = plan.compute if op in SUMMED else op
        out = compute(*map(on_host, args), **host_kwargs(kwargs))
    else:
        out = known.shapes(op, args, kwargs)
    if odd.is_odd(out) and not plan.inplace:
        plan.cost = cost_of(op, args, kwargs, (), view)
        session.account(plan.entry(phase()))
        return odd.wrapped(op, out, args, plan.card)
    if plan.inplace:
        forms: tuple[Form | None, ...] = (args[0].form,) if args and type(args[0]) is SimTensor else ()
    else:
        forms = forms_of(plan, out, plan.card)
    plan.settle(op, args, kwargs, forms, view)
    if all(type(value) in CONSTANT for value in kwargs.values()):
        plan.named = host_kwargs(kwargs)
    if plan.card != session.card:
        session.use_card(plan.card)
    session.account(plan.entry(phase()))
    if not session.numerics:
        plan.watched = known.concerns(op, forms, args, kwargs)
        out = known.compute(op, op, args, kwargs) if plan.watched else out if plan.outs is None else None
    if op is DETACH and plan.form is args[0].form:
        plan.form.detached = plan
    if place is not None:
        place[0][place[1]] = plan
    if plan.inplace:
        return None if plan.returns_nothing else args[0]
    return wrap_out(plan, out, args)


def forms_of(plan: Plan, out: Any, index: int) -> tuple[Form | None, ...]:
    """The results' forms, noted in the plan as well."""
    if isinstance(out, torch.Tensor):
        plan.form = form_of(out.size(), out.stride(), out.dtype, index)
        plan.outs = (plan.form,)
    elif isinstance(out, tuple | list):
        plan.single = False
        plan.outs = tuple(
            form_of(o.size(), o.stride(), o.dtype, index) if isinstance(o, torch.Tensor) else None for o in out
        )
    else:
        plan.outs = None
        return ()
    return plan.outs


def device_index(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """On which simulated GPU the result lies."""
    wanted = kwargs.get("device")
    if wanted is not None and torch.device(wanted).type == DEVICE_NAME:
        return card_of(wanted)
    for a in args:
        first = a[0] if type(a) is list and a else a
        if type(first) is SimTensor:
            return first.form.device.index or 0
    return thread.card


def reshape_in_place(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ops that change the tensor itself: t_, squeeze_, resize_, set_."""
    session = current.session
    t = args[0]
    host = t.host.detach() if known.host(t) is not None else known.on_meta(t)  # `detached` shares the host's tensor
    op(host, *[on_host(a) for a in args[1:]], **host_kwargs(kwargs))
    become(args[0], host)
    plan = Plan(short_name(op))
    plan.cost = cost_of(op, args, kwargs, (), view=True)
    session.account(plan.entry(phase()))
    return args[0]


def into_out(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]) -> Any:
    """Ops that write into tensors handed to them as `out=`, which may change size on the way."""
    session = current.session
    if session.numerics or known.all_known(args, [kwargs[name] for name in names]):
        for name in names:
            if type(kwargs[name]) is SimTensor and kwargs[name].host is not None:
                kwargs[name].host = kwargs[name].host.detach()  # may change its size, and `detached` shares it
        hosted = host_kwargs(kwargs)
        op(*map(on_host, args), **hosted)
    else:
        hosted = {k: known.on_meta(v) for k, v in kwargs.items()} | ({"device": META} if "device" in kwargs else {})
        op(*map(known.on_meta, args), **hosted)
        for name in names:
            kwargs[name].host = None
    forms = []
    for name in names:
        t, host = kwargs[name], hosted[name]
        if host.size() != t.form.size or host.stride() != t.form.stride:
            become(t, host)
        forms.append(t.form)
    plan = Plan(short_name(op))
    plan.cost = cost_of(op, args, {k: v for k, v in kwargs.items() if k not in names}, tuple(forms), view=False)
    session.account(plan.entry(phase()))
    results = tuple(kwargs[name] for name in names)
    return results[0] if len(results) == 1 else results


def enter(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """`run`, seen by whoever watches the session."""
    watch = current.session.watch
    return run(op, args, kwargs) if watch is None else watch.run(run, op, args, kwargs)


def dispatch(op: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """Torch's entry for ops on `SimTensor`; another tensor class among the arguments goes first."""
    if len(types) != 1:
        return NotImplemented
    watch = current.session.watch
    return run(op, args, kwargs) if watch is None else watch.run(run, op, args, kwargs)


# torch looks it up for each op and each new tensor; a class method would be bound anew each time
SimTensor.__torch_dispatch__ = staticmethod(dispatch)  # type: ignore[method-assign]
