"""Find a script's training steps without its help: where its optimizer has just stepped.

A mark is the end of a step. Best are the script's own (`gpututor.step()`), then the steps of the optimizer that
stepped first (so a GAN with two optimizers counts each round once, and a GradScaler around one counts once), then,
where no optimizer is ever made, the ends of its backward passes. Without any of these the run is one window.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from gpututor import marking

Kind = Literal["marked", "optimizer", "backward"]
KINDS: tuple[Kind, ...] = ("marked", "optimizer", "backward")
TAKES_OVER = 20
"""Our choice: after so many steps of another optimizer without one of the leading one, that other one leads."""


@dataclass(slots=True)
class Mark:
    """The end of a step: how far the tape was, the virtual time, the time with kernels, and the last loss."""

    at: int
    virtual_ns: int
    busy_ns: int
    loss: float | None
    n_samples: int | None = None


@dataclass(slots=True)
class Marks:
    """Marks of every kind, and which kind counts."""

    by_kind: dict[Kind, list[Mark]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    has_optimizer: bool = False

    @property
    def kind(self) -> Kind | None:
        """The best kind of which there are marks."""
        return next((kind for kind in KINDS if self.by_kind[kind]), None)

    @property
    def best(self) -> list[Mark]:
        """The marks that count."""
        return self.by_kind[self.kind] if self.kind else []


class StepWatch:
    """Listens to torch's optimizers, backward passes and scalers, and tells `on_mark` of each step that counts."""

    def __init__(self, here: Callable[[], tuple[int, int, int]], on_mark: Callable[[], None]) -> None:
        self.marks = Marks()
        self._here, self._on_mark = here, on_mark
        self._loss: float | None = None
        self._leader: weakref.ref[Any] | None = None
        self.leader_name = ""
        self._others = 0
        self._in_scaler = 0
        self._scaled: tuple[int, float | None] | None = None

    # --- what is heard ---------------------------------------------------------------------------------------

    def marked(self, n_samples: int | None) -> None:
        """The script called `gpututor.step()`."""
        self._mark("marked", n_samples)

    def optimizer_stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        leader = None if self._leader is None else self._leader()
        if leader is not optimizer:
            self._others += 1
            if leader is not None and self._others < TAKES_OVER:
                return
            self._leader, self.leader_name = weakref.ref(optimizer), type(optimizer).__name__
        self._others = 0
        self._mark("optimizer")

    def went_backward(self, root: Any) -> None:
        """A backward pass from `root` has ended."""
        self.note_loss(root)
        self._mark("backward")

    def note_loss(self, root: Any) -> None:
        """Remember the value of a loss, read without the simulated card noticing."""
        if self._scaled is not None and self._scaled[0] == id(root):
            self._loss, self._scaled = self._scaled[1], None
        else:
            value = one_number(root)
            self._loss = value if value is not None else self._loss

    def _mark(self, kind: Kind, n_samples: int | None = None) -> None:
        at, virtual_ns, busy_ns = self._here()
        self.marks.by_kind[kind].append(Mark(at, virtual_ns, busy_ns, self._loss, n_samples))
        if kind == self.marks.kind and not (kind == "backward" and self.marks.has_optimizer):
            self._on_mark()

    # --- how it listens --------------------------------------------------------------------------------------

    def install(self, put: Callable[[Any, str, Any], None]) -> None:
        """Begin to listen; `put(owner, name, value)` replaces an attribute of torch."""
        import torch
        from torch.amp import grad_scaler
        from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

        marking.listen(self.marked)
        register_optimizer_step_post_hook(self._after_step)
        put(Optimizer, "__init__", self._noting_optimizer(Optimizer.__init__))
        put(torch.Tensor, "backward", self._around_backward(torch.Tensor.backward))
        put(grad_scaler.GradScaler, "step", self._around_scaler_step(grad_scaler.GradScaler.step))
        put(grad_scaler.GradScaler, "scale", self._around_scale(grad_scaler.GradScaler.scale))

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        if not self._in_scaler:
            self.optimizer_stepped(optimizer)

    def _noting_optimizer(self, init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def noting(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self.marks.has_optimizer = True
            init(optimizer, *args, **kwargs)

        return noting

    def _around_backward(self, backward: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(backward)
        def around(root: Any, *args: Any, **kwargs: Any) -> None:
            backward(root, *args, **kwargs)
            self.went_backward(root)

        return around

    def _around_scaler_step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def around(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self._in_scaler += 1
            try:
                out = step(scaler, optimizer, *args, **kwargs)
            finally:
                self._in_scaler -= 1
            self.optimizer_stepped(optimizer)
            return out

        return around

    def _around_scale(self, scale: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(scale)
        def around(scaler: Any, outputs: Any) -> Any:
            out = scale(scaler, outputs)
            self._scaled = (id(out), one_number(outputs))
            return out

        return around


def one_number(tensor: Any) -> float | None:
    """The value of a tensor with one element, if it can be had without making anybody wait."""
    host = getattr(tensor, "host", None)
    if host is None:  # a real tensor of the CPU may be read at once; one on a real GPU would make the host wait
        host = tensor if getattr(getattr(tensor, "device", None), "type", "") == "cpu" else None
    if host is None or host.numel() != 1 or host.is_complex():
        return None
    return float(host.detach())
