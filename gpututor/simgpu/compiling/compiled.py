"""`torch.compile` on the simulated GPU: the code runs as it is, and is accounted as compiled.

Two identity functions of autograd stand at the region's inputs and outputs, so that its backward is found too: it
begins where a gradient reaches an output, and ends where one leaves an input or with the backward pass.
Modes: "reduce-overhead" and "max-autotune" replay CUDA graphs; the kernels are those of the default mode in each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu.compiling.guards import Guards, Version, input_bytes
from gpututor.simgpu.compiling.regions import BACKWARD, FORWARD, Region
from gpututor.simgpu.private.asked import ORIGINAL_MODULE
from gpututor.simgpu.private.modules import modules_of, tree_flatten, tree_leaves, tree_unflatten
from gpututor.simgpu.session import current
from gpututor.simgpu.tensor import SimTensor
from gpututor.simgpu.watching import listen, watch_of

WITH_GRAPHS = ("reduce-overhead", "max-autotune")
NOT_COMPILED = ("eager", "aot_eager")
_torch_compile = torch.compile


class Code:
    """One compiled function: its guards, and how its regions are run."""

    def __init__(self, function: Callable[..., Any], of: Any, options: dict[str, Any]) -> None:
        self.function, self.of, self.options = function, of, options
        self.guards = Guards(options.get("dynamic"))
        self.graphs = options.get("mode") in WITH_GRAPHS
        self.fullgraph = bool(options.get("fullgraph"))
        self._real: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's own result, accounted as compiled where the simulated GPU has part in it."""
        if not self._on_simulated_gpu(args, kwargs):
            if self._real is None:
                self._real = _torch_compile(self.function, **self.options)
            return self._real(*args, **kwargs)
        if current.session.remote or any(isinstance(listener, Region) for listener in _listeners()):
            return self.function(*args, **kwargs)  # compiled inside compiled: part of the outer one
        version = self.guards.version_for((args, kwargs), *_modes(self.of))
        if version is None:
            return self.function(*args, **kwargs)
        return self._run(version, args, kwargs)

    def _run(self, version: Version, args: Any, kwargs: Any) -> Any:
        copied = input_bytes((args, kwargs)) if self.graphs else 0
        args, kwargs = _edge(_Entry, self, version, (args, kwargs))
        region = Region(
            version,
            FORWARD,
            graphs=self.graphs,
            fullgraph=self.fullgraph,
            copied_bytes=copied,
            inference=not torch.is_grad_enabled(),
        )
        watch = listen(region)
        out = None
        try:
            out = self.function(*args, **kwargs)
        finally:
            try:
                region.end(out)
            finally:
                watch.remove(region)
        return _edge(_Exit, self, version, out)

    def begin_backward(self, version: Version) -> None:
        """A gradient has reached an output."""
        end_backward()
        region = Region(version, BACKWARD, graphs=self.graphs, fullgraph=False)
        region.on_backward_done = end_backward
        listen(region)

    def _on_simulated_gpu(self, args: Any, kwargs: Any) -> bool:
        """Whether a tensor of the call or of the module lies there, or none is seen, as in an optimizer's step."""
        seen = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if isinstance(self.of, torch.nn.Module):
            seen += self.of.parameters()
        return not seen or any(isinstance(t, SimTensor) for t in seen)


def _listeners() -> list[Any]:
    watch = current.session.watch
    return [] if watch is None else watch.listeners


def end_backward() -> None:
    """Account the backward region that is open, if one is."""
    for region in [r for r in _listeners() if isinstance(r, Region) and r.phase == BACKWARD]:
        try:
            region.end()
        finally:
            watch_of(current.session).remove(region)


def _modes(of: Any) -> tuple[Any, ...]:
    return tuple(m.training for m in of.modules()) if isinstance(of, torch.nn.Module) else ()


# --- the region's edges in autograd's graph ---------------------------------------------------------------------


class _Entry(torch.autograd.Function):
    """Identity at the inputs."""

    @staticmethod
    def forward(ctx: Any, code: Code, version: Version, *tensors: Any) -> Any:
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        end_backward()
        return None, None, *grads


class _Exit(torch.autograd.Function):
    """Identity at the outputs."""

    @staticmethod
    def forward(ctx: Any, code: Code, version: Version, *tensors: Any) -> Any:
        ctx.code, ctx.version = code, version
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.code.begin_backward(ctx.version)
        return None, None, *grads


def _edge(function: Any, code: Code, version: Version, tree: Any) -> Any:
    """The same tree with its tensors that need a gradient sent through `function`."""
    leaves, shape = tree_flatten(tree)
    at = [k for k, leaf in enumerate(leaves) if type(leaf) is SimTensor and leaf.requires_grad]
    if not at or not torch.is_grad_enabled():
        return tree
    for k, passed in zip(at, function.apply(code, version, *[leaves[k] for k in at]), strict=True):
        leaves[k] = passed
    return tree_unflatten(leaves, shape)


# --- torch.compile itself ---------------------------------------------------------------------------------------


class Optimized(torch.nn.Module):
    """A compiled module: the same parameters, state and attributes, another account of its forward."""

    def __init__(self, module: torch.nn.Module, options: dict[str, Any]) -> None:
        super().__init__()
        setattr(self, ORIGINAL_MODULE, module)
        self.__dict__["code"] = Code(module, module, options)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward, compiled."""
        return self.__dict__["code"](*args, **kwargs)

    def train(self, mode: bool = True) -> Optimized:
        """Set the module's own mode."""
        modules_of(self)[ORIGINAL_MODULE].train(mode)
        return super().train(mode)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(modules_of(self)[ORIGINAL_MODULE], name)


def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001  # torch's own name
    """`torch.compile`: `model` compiled, or a decorator. What doesn't touch the simulated GPU is torch's to compile.

    `mode`, `dynamic`, `fullgraph` and `disable` mean what they mean in torch; other backends than "inductor" run the
    code as it is.
    """
    if model is None:
        return functools.partial(compile, **options)
    if options.get("disable") or options.get("backend") in NOT_COMPILED:
        return model
    if isinstance(model, torch.nn.Module):
        return Optimized(model, options)
    code = Code(model, getattr(model, "__self__", None), options)

    @functools.wraps(model)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return code(*args, **kwargs)

    return compiled


def stand_in() -> None:
    """Put ours in the place of `torch.compile`, which would see through the simulated tensors to the CPU."""
    torch.compile = compile
