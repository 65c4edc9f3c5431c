"""What is noted while a graph is captured: the account of its kernels, and how to compute them again.

On CUDA a capture runs nothing: kernels are noted and the tensors made in it hold no values before the first replay.
Here every op does run once, because the program needs its results' shapes; what it changed that existed before is
put back at the end, and so is the random generator. A replay then computes each op again on the same memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from gpututor.model.tape import CopyCall, GraphReplay, Sync, TapeOp, WaitEvent
from gpututor.simgpu import rng
from gpututor.simgpu.autograd import gradients
from gpututor.simgpu.compiling.fusible import changed_by, tensors_in
from gpututor.simgpu.dispatch import RESIZING, host_kwargs, on_host
from gpututor.simgpu.precision import half_softmax
from gpututor.simgpu.private.tensors import schema_of
from gpututor.simgpu.tensor import SimTensor
from gpututor.simgpu.watching import Listener

if TYPE_CHECKING:
    from gpututor.model.tape import Entry

NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing"
UNPINNED = (
    "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
    "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True, and copy with non_blocking=True."
)
CHANGES_UNSAID = {"native_batch_norm": (3, 4), "cudnn_batch_norm": (3, 4)}  # running statistics, by place

Step = Callable[[], None]
_without_kernels: dict[int, tuple[TapeOp, TapeOp]] = {}


def without_kernels(op: TapeOp) -> TapeOp:
    """What the host does for an op that is captured: everything but the launches."""
    known = _without_kernels.get(id(op))
    if known is None:
        known = _without_kernels[id(op)] = (op, TapeOp(op.name, op.host, op.phase))
    return known[1]


class Capture(Listener):
    """Takes the account of a graph, and with `numerics` the steps that compute it."""

    def __init__(self, numerics: bool) -> None:
        self.numerics = numerics
        self.nodes: list[TapeOp | CopyCall] = []
        self.steps: list[Step] = []
        self._made: set[int] = set()  # blocks of tensors made in the capture, by identity
        self._saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # storage as bytes, and a copy of it
        self._forwards: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._rng = torch.get_rng_state() if numerics else None
        self._card_rng = rng.get_rng_state() if numerics else None

    # --- the account ------------------------------------------------------------------------------------------

    def account(self, entry: Entry) -> None:
        """Take kernels and copies; refuse what waits.

        Raises:
            RuntimeError: the host would wait for the card, which is being captured.
        """
        if type(entry) is TapeOp:
            if entry.kernels:
                self.nodes.append(entry)
            self.onward(without_kernels(entry))
        elif type(entry) is GraphReplay:
            self.nodes += entry.nodes
        elif type(entry) is CopyCall:
            if entry.blocking:
                raise RuntimeError(UNPINNED if entry.to_gpu else f"{NOT_PERMITTED} ({entry.name} waits for the result)")
            self.nodes.append(entry)
        elif type(entry) is Sync or (type(entry) is WaitEvent and entry.stream is None):
            name = entry.name if type(entry) is Sync else "event.synchronize"
            raise RuntimeError(f"{NOT_PERMITTED} ({name} waits for the card)")
        else:
            self.onward(entry)

    # --- computing it again -----------------------------------------------------------------------------------

    def before(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep a copy of what the op will change and the capture must not."""
        if not self.numerics:
            return
        places = CHANGES_UNSAID.get(schema_of(op).name.removeprefix("aten::"), ())
        unsaid = [args[k] for k in places if k < len(args) and type(args[k]) is SimTensor]
        for t in [*changed_by(op, args, kwargs), *unsaid]:
            if id(t.block) in self._made or t.host is None:
                continue
            storage = t.host.untyped_storage()
            if storage.data_ptr() not in self._saved:
                flat = torch.empty(0, dtype=torch.uint8).set_(storage)
                self._saved[storage.data_ptr()] = flat, flat.clone()

    def after(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """Note how to compute the op again."""
        outs = list(tensors_in(out))
        given = {id(t.block) for t in tensors_in([*args, *kwargs.values()])}  # views lie in what was there before
        self._made |= {id(t.block) for t in outs} - given
        if self.numerics:
            step = _step_of(op, args, kwargs, outs)
            if step is not None:
                self.steps.append(step)

    def whole(self, compute: Any, note: Any, tensors: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
        """Note how to compute a whole op again, with autograd's graph for its backward."""
        self._made |= {id(t.block) for t in outs}
        if not self.numerics:
            return
        train = torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in tensors)
        inputs = [(t.host, train and t.requires_grad) if type(t) is SimTensor else (t, False) for t in tensors]
        targets = [t.host for t in outs]
        latest: dict[str, Any] = {}
        self._forwards[id(note)] = note, latest

        def again() -> None:
            hosts = [h.detach().requires_grad_(need) if isinstance(h, torch.Tensor) else h for h, need in inputs]
            with torch.set_grad_enabled(train):
                results = rng.drawn(compute, *hosts)
            latest.update(hosts=hosts, outs=results)
            for target, result in zip(targets, results, strict=True):
                if target is not None:
                    target.copy_(result.detach())

        self.steps.append(again)

    def whole_backward(self, note: Any, tensors: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
        """Note how to compute such an op's gradients again, from the latest replay of its forward."""
        self._made |= {id(t.block) for t in tensors_in(list(grads))}
        known = self._forwards.get(id(note))
        if not self.numerics or known is None:
            return
        latest = known[1]
        incoming = [None if g is None else g.host for g in tensors]
        targets = [g.host for g in grads if type(g) is SimTensor]

        def again() -> None:
            pairs = [(o, g) for o, g in zip(latest["outs"], incoming, strict=True) if g is not None and o.requires_grad]
            need = [h for h in latest["hosts"] if isinstance(h, torch.Tensor) and h.requires_grad]
            found = [g for g in gradients([o for o, _ in pairs], [g for _, g in pairs], need) if g is not None]
            for target, result in zip(targets, found, strict=True):
                if target is not None:
                    target.copy_(result)

        self.steps.append(again)

    # --- the end ----------------------------------------------------------------------------------------------

    def put_back(self) -> None:
        """Leave everything that was there before as it was."""
        with torch.no_grad():
            for flat, copy in self._saved.values():
                flat.copy_(copy)
        self._saved.clear()
        if self._rng is not None and self._card_rng is not None:
            torch.set_rng_state(self._rng)
            rng.set_rng_state(self._card_rng)


def _step_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outs: list[SimTensor]) -> Step | None:
    """How to compute one op again on the same memory; None for views and for changes of shape."""
    schema = schema_of(op)
    if torch.Tag.inplace_view in op.tags or op in RESIZING or not (outs or schema.is_mutable):
        return None
    if any(a.alias_info is not None and not a.alias_info.is_write for a in schema.arguments):
        return None
    hosts, hosted = [on_host(a) for a in args], host_kwargs(kwargs)
    targets = [] if schema.is_mutable else [t.host for t in outs]
    drawn = rng.SEEDED in op.tags

    compute = half_softmax.on_the_host(op)

    def again() -> None:
        results = rng.drawn(lambda: op(*hosts, **hosted)) if drawn else compute(*hosts, **hosted)
        several = results if isinstance(results, list | tuple) else (results,)
        tensors = (r for r in several if isinstance(r, torch.Tensor))
        for target, result in zip(targets, tensors, strict=False):
            if target is not None:
                target.copy_(result)

    return again
