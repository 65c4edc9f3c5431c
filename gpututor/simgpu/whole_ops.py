"""Ops that a CUDA card runs as one, and a CPU as many: recurrent layers, attention, dropout.

Each is taken whole, above torch's own decomposition, computed by the CPU's own kernel with the CPU's own
autograd inside, and accounted as the card's library would run it. Values and gradients are the CPU's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu import kept, known, rng
from gpututor.simgpu.autograd import gradients
from gpututor.simgpu.forms import DTYPE_NAME, Form, form_of
from gpututor.simgpu.memory import block_of
from gpututor.simgpu.note import Note
from gpututor.simgpu.plans import outline
from gpututor.simgpu.private.functions import transforms_active
from gpututor.simgpu.recurrent import rnn_facts, rnn_note, rnn_outlines
from gpututor.simgpu.session import current, thread
from gpututor.simgpu.special import values
from gpututor.simgpu.tensor import SimTensor, host_of, new, new_each, wrap
from gpututor.simgpu.watching import seen_backward

Compute = Callable[..., tuple[torch.Tensor, ...]]
_out_forms: dict[tuple[Any, ...], tuple[Form, ...]] = {}


def differentiated_once(backward: Any) -> Any:
    """Torch's `once_differentiable`, which costs nothing where no graph of the backward pass is asked for."""
    careful = torch.autograd.function.once_differentiable(backward)

    def now(ctx: Any, *grads: Any) -> Any:
        return (careful if torch.is_grad_enabled() else backward)(ctx, *grads)

    return now


class Whole(torch.autograd.Function):
    """Runs `compute` on the CPU twins of `tensors`, and its backward through the CPU's graph."""

    @staticmethod
    def forward(ctx: Any, compute: Compute, note: Note, *tensors: Any) -> Any:
        """The results of `compute`; `note` accounts the op."""
        train = any(ctx.needs_input_grad)
        ctx.note, ctx.index = note, next(t.form.device.index for t in tensors if type(t) is SimTensor)
        note.card = ctx.index
        hosts = [twin(t) for t in tensors]
        thread.inside_whole = True
        try:
            with torch.set_grad_enabled(train):
                outs = rng.drawn(compute, *hosts)
        finally:
            thread.inside_whole = False
        if train:
            ctx.hosts, ctx.outs = hosts, outs
        note.forward()
        results = tuple(wrap(o.detach(), index=ctx.index) for o in outs)
        if train:
            note.keep(ctx, tensors, results)
        return results

    @staticmethod
    @differentiated_once
    @seen_backward
    def backward(ctx: Any, *grads: Any) -> Any:
        """Gradients of the tensors, by the CPU's own autograd."""
        pairs = [
            (out, host_of(g)) for out, g in zip(ctx.outs, grads, strict=True) if g is not None and out.requires_grad
        ]
        need = [h for h in ctx.hosts if isinstance(h, torch.Tensor) and h.requires_grad]
        found = iter(gradients([o for o, _ in pairs], [g for _, g in pairs], need))
        ctx.note.backward()
        results: list[Any] = [None, None]
        for h in ctx.hosts:
            g = next(found) if isinstance(h, torch.Tensor) and h.requires_grad else None
            results.append(wrap(g, index=ctx.index) if g is not None else None)
        return tuple(results)


class Shapes(torch.autograd.Function):
    """The same with numerics off: results by shape, gradients shaped like the tensors."""

    @staticmethod
    def forward(ctx: Any, compute: Compute, note: Note, *tensors: Any) -> Any:
        """Empty results; their shapes are found once for each kind of call, on torch's meta device."""
        given = [t.form if type(t) is SimTensor else None for t in tensors]
        ctx.note, ctx.forms = note, given
        index = note.card = next(f for f in given if f is not None).device.index
        key = (note.key, *given)
        forms = _out_forms.get(key)
        if forms is None:
            with torch.no_grad():
                outs = compute(*map(known.on_meta, tensors))
            forms = _out_forms[key] = tuple(form_of(o.size(), o.stride(), o.dtype, index or 0) for o in outs)
        note.forward()
        results = tuple(new_each(forms, (None,) * len(forms), current.session.memories[index]))
        if any(ctx.needs_input_grad):
            note.keep(ctx, tensors, results)
        return results

    @staticmethod
    @differentiated_once
    @seen_backward
    def backward(ctx: Any, *grads: Any) -> Any:
        """Empty gradients."""
        note, need = ctx.note, ctx.needs_input_grad
        note.backward()
        memories = current.session.memories
        results: list[Any] = [None, None]
        for k, form in enumerate(ctx.forms, 2):
            wanted = form is not None and need[k]
            results.append(new(form, None, block_of(form.n_bytes, memories[form.device.index])) if wanted else None)
        return tuple(results)


_apply_whole: Any = super(torch.autograd.Function, Whole).apply
_apply_shapes: Any = super(torch.autograd.Function, Shapes).apply
"""What is below torch's `Function.apply`, which first looks for functions taken apart by functorch, at some cost."""


def run_whole(compute: Compute, note: Note, *tensors: Any) -> Any:
    """One whole op on these tensors, computed or only followed by shape."""
    session = current.session
    watch = session.watch
    if transforms_active():
        apply = (Whole if session.numerics else Shapes).apply
    else:
        apply = _apply_whole if session.numerics else _apply_shapes
    return apply(compute, note, *tensors) if watch is None else watch.whole(apply, compute, note, tensors)


def twin(t: Any) -> Any:
    """A leaf on the CPU with the same values, which asks for a gradient where `t` does."""
    if type(t) is not SimTensor:
        return t
    host = values(t, "a recurrent layer, attention or dropout").detach()
    return host.requires_grad_() if t.requires_grad and host.is_floating_point() else host


# --- recurrent layers -------------------------------------------------------------------------------------------


def rnn_kernel(mode: str, n_states: int, packed: bool) -> Callable[..., Any]:
    """The device's kernel for one kind of recurrent layer."""
    name = f"{mode}.{'data' if packed else 'input'}"
    op = getattr(getattr(torch.ops.aten, mode), "data" if packed else "input")

    def kernel(*a: Any) -> Any:
        if packed:
            x, batch_sizes, hx, params, *rest = a
        else:
            x, hx, params, *rest = a
            batch_sizes = None
        states = list(hx) if n_states == 2 else [hx]
        note = rnn_note(rnn_facts(mode, x, states, rest, batch_sizes))
        note.called(name, a, {})

        def compute(x: Any, *ts: Any) -> tuple[torch.Tensor, ...]:
            if x.is_meta:
                return rnn_outlines(x, ts[:n_states], rest, packed)
            h = list(ts[:n_states]) if n_states == 2 else ts[0]
            weights = list(ts[n_states:])
            out = op(x, batch_sizes, h, weights, *rest) if packed else op(x, h, weights, *rest)
            return tuple(out)

        return run_whole(compute, note, x, *states, *params)

    return kernel


def cell_kernel(mode: str) -> Callable[..., Any]:
    """The device's kernel for a single LSTM or GRU cell."""
    op = getattr(torch.ops.aten, f"{mode}_cell").default

    def kernel(x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        states = list(hx) if isinstance(hx, list | tuple) else [hx]
        biases = [b for b in (b_ih, b_hh) if b is not None]
        facts = {
            "mode": mode,
            "seq": 1,
            "batch": x.shape[0] if x.dim() > 1 else 1,
            "input": x.shape[-1],
            "hidden": states[0].shape[-1],
            "layers": 1,
            "directions": 1,
            "dtype": DTYPE_NAME[x.dtype],
            "packed": False,
            "train": torch.is_grad_enabled(),
        }

        def compute(x: Any, *ts: Any) -> tuple[torch.Tensor, ...]:
            h = list(ts[: len(states)]) if len(states) == 2 else ts[0]
            out = op(x, h, *ts[len(states) :])
            return out if isinstance(out, tuple) else (out,)

        note = rnn_note(facts)
        note.called(f"{mode}_cell", (x, hx, w_ih, w_hh, b_ih, b_hh), {})
        note.extra_bytes = kept.of_cell(facts) if facts["train"] else 0
        found = run_whole(compute, note, x, *states, w_ih, w_hh, *biases)
        return found if len(states) == 2 else found[0]

    return kernel


# --- attention and dropout --------------------------------------------------------------------------------------


def attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """scaled_dot_product_attention as one fused op each way."""
    op = torch.ops.aten.scaled_dot_product_attention.default
    note = Note(
        "gpututor.attention.forward",
        "gpututor.attention.backward",
        (outline(q), outline(k), outline(v)),
        {"causal": is_causal, "masked": attn_mask is not None, "dropout": dropout_p > 0},
    )

    note.extra_bytes = kept.of_attention(tuple(q.shape))
    named = {"scale": scale, "enable_gqa": enable_gqa}
    note.called("scaled_dot_product_attention", (q, k, v, attn_mask, dropout_p, is_causal), named)

    def compute(q: Any, k: Any, v: Any, mask: Any = None) -> tuple[torch.Tensor, ...]:
        out = op(q, k, v, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        # CUDA's fused kernels write batch, position, head, channel, whichever way the CPU's kernel did
        return (out.transpose(1, 2).contiguous().transpose(1, 2) if out.dim() == 4 else out,)

    return run_whole(compute, note, q, k, v, *([attn_mask] if attn_mask is not None else []))[0]


def dropout(x: Any, p: float, train: bool) -> Any:
    """Dropout as one kernel each way; the mask is the CPU's for the same seed."""
    if not train or p == 0 or x.numel() == 0:
        return x
    note = Note("aten.native_dropout.default", "aten.native_dropout_backward.default", (outline(x),), {})
    note.rounds = False
    note.called("dropout", (x, p, train), {})
    note.keeps_tensors, note.extra_bytes = False, x.numel()  # its mask, a byte an element
    return run_whole(lambda h: (torch.ops.aten.dropout.default(h, p, True),), note, x)[0]


_library = torch.library.Library("aten", "IMPL")  # registrations last as long as this object


def _kernels() -> dict[str, Callable[..., Any]]:
    """The kernels by torch's names for the ops."""
    found: dict[str, Callable[..., Any]] = {"scaled_dot_product_attention": attention, "dropout": dropout}
    for mode, n_states in (("lstm", 2), ("gru", 1), ("rnn_tanh", 1), ("rnn_relu", 1)):
        found[f"{mode}.input"] = rnn_kernel(mode, n_states, packed=False)
        found[f"{mode}.data"] = rnn_kernel(mode, n_states, packed=True)
    for mode in ("lstm", "gru"):
        found[f"{mode}_cell"] = cell_kernel(mode)
    return found


KERNELS = _kernels()


def apply_by(apply: Callable[..., Any]) -> None:
    """Let `apply(compute, note, *tensors)` run whole ops from now on, on a card whose program is in another process."""
    global _apply_whole
    _apply_whole = apply


def register_whole_ops() -> None:
    """Take these ops whole, with gradients and without."""
    for name, kernel in KERNELS.items():
        _library.impl(name, kernel, "AutogradPrivateUse1")
        _library.impl(name, kernel, "PrivateUse1")
