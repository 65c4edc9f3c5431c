"""`make_graphed_callables`: functions and modules whose forward and backward are one graph each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gpututor.simgpu import streams
from gpututor.simgpu.graphs.graphs import CUDAGraph, Pool, graph, graph_pool_handle
from gpututor.simgpu.private.modules import tree_flatten, tree_leaves, tree_unflatten
from gpututor.simgpu.tensor import SimTensor

WARMUPS = 3  # torch's default: some libraries choose their kernels in the first calls


@dataclass(slots=True, eq=False)
class _Graphed:
    """One callable's graphs and the memory they read and write."""

    call: Callable[..., Any]
    inputs: tuple[SimTensor, ...]
    parameters: tuple[Any, ...]
    forward: CUDAGraph
    outputs: tuple[Any, ...] = ()
    shape: Any = None
    backward: CUDAGraph | None = None
    grads_in: tuple[Any, ...] = ()
    grads_out: tuple[Any, ...] = ()

    @property
    def leaves(self) -> tuple[Any, ...]:
        """Inputs and parameters that want a gradient."""
        return tuple(t for t in (*self.inputs, *self.parameters) if t.requires_grad)


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = WARMUPS,
    allow_unused_input: bool = False,
    pool: Pool | None = None,
) -> Any:
    """The callables with their forward and backward as graphs, for inputs shaped like `sample_args`.

    Give one callable with its arguments as a tuple, or a tuple of callables with a tuple of such tuples, in the
    order in which they run; backward is captured in the reverse order. Arguments are tensors.

    Raises:
        RuntimeError: inside autocast with its cache on, or a callable waits for the card.
    """
    if torch.is_autocast_enabled("simgpu") and torch.is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables does not support autocast caching; pass cache_enabled=False to it")
    single = not isinstance(callables, tuple)
    many, samples = ((callables,), (sample_args,)) if single else (callables, sample_args)
    pool = pool or graph_pool_handle()
    parts = [_part(call, args) for call, args in zip(many, samples, strict=True)]
    side = streams.Stream()
    with streams.StreamContext(side):
        for part in parts:
            for _ in range(num_warmup_iters):
                outs = [o for o in tree_leaves(part.call(*part.inputs)) if o.requires_grad]
                _gradients(outs, part.leaves, tuple(torch.ones_like(o) for o in outs), allow_unused_input)
    for part in parts:
        with graph(part.forward, pool=pool):
            outs, part.shape = tree_flatten(part.call(*part.inputs))
        part.outputs = tuple(outs)
    for part in reversed(parts):
        _capture_backward(part, pool, allow_unused_input)
    made = [_callable_of(part) for part in parts]
    return made[0] if single else tuple(made)


def _part(call: Any, args: Sequence[Any]) -> _Graphed:
    parameters = tuple(call.parameters()) if isinstance(call, torch.nn.Module) else ()
    return _Graphed(call, tuple(tree_leaves(list(args))), parameters, CUDAGraph())


def _gradients(outs: Any, leaves: tuple[Any, ...], grads: tuple[Any, ...], allow_unused: bool) -> tuple[Any, ...]:
    if not outs or not leaves:
        return ()
    return torch.autograd.grad(outs, leaves, grads, only_inputs=True, allow_unused=allow_unused)


def _capture_backward(part: _Graphed, pool: Pool, allow_unused: bool) -> None:
    wanted = [o for o in part.outputs if o.requires_grad]
    if not wanted or not part.leaves:
        return
    part.backward = CUDAGraph()
    part.grads_in = tuple(torch.empty_like(o) if o.requires_grad else None for o in part.outputs)
    with graph(part.backward, pool=pool):
        part.grads_out = _gradients(wanted, part.leaves, tuple(g for g in part.grads_in if g is not None), allow_unused)


class _Replay(torch.autograd.Function):
    """Copies inputs and gradients to where the graphs read them, and replays."""

    @staticmethod
    def forward(ctx: Any, part: _Graphed, *tensors: Any) -> Any:
        ctx.part = part
        for static, given in zip(part.inputs, tensors, strict=False):
            if static is not given:
                static.detach().copy_(given)
        part.forward.replay()
        return tuple(o.detach() for o in part.outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        part = ctx.part
        if part.backward is None:
            return (None,) * (1 + len(part.inputs) + len(part.parameters))
        for static, given in zip(part.grads_in, grads, strict=True):
            if static is not None and given is not None:
                static.copy_(given)
        part.backward.replay()
        found = iter(part.grads_out)
        results = [next(found) if t.requires_grad else None for t in (*part.inputs, *part.parameters)]
        return None, *(None if g is None else g.detach() for g in results)


def _callable_of(part: _Graphed) -> Any:
    def graphed(*args: Any) -> Any:
        outs = _Replay.apply(part, *tree_leaves(list(args)), *part.parameters)
        return tree_unflatten(list(outs), part.shape)

    module = part.call
    if not isinstance(module, torch.nn.Module):
        return graphed
    captured_training, eager = module.training, module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        return graphed(*args) if module.training == captured_training and not kwargs else eager(*args, **kwargs)

    module.forward = forward
    return module
