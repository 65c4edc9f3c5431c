"""One training step run in several ways: as it is, as TorchScript, compiled, and as a CUDA graph.

All ways train the same network on the same batches in the same order, so their losses agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import TYPE_CHECKING, Any

from gpututor.errors import ExperimentError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

N_BEFORE_CAPTURE = 3  # eager steps first, on a stream of their own; source: PyTorch's notes on CUDA graphs


class Way(Enum):
    """How a step is run; the value is what a reader sees."""

    EAGER = "as it is"
    SCRIPT = "TorchScript"
    COMPILED = "compiled"
    GRAPH = "one graph"
    BOTH = "compiled, in graphs"

    @property
    def key(self) -> str:
        """Names its files."""
        return self.name.lower()


NOT_ON_A_PROCESSOR = frozenset({Way.GRAPH, Way.BOTH})


class Training:
    """A network, its optimizer and a loss, trained in one way; call it with a batch, a tuple of tensors.

    `loss_of(net, batch)` calls the network and gives the loss. The loss that comes back stays on the device, in memory
    of its own. `compile_with` are options for `gpututor.compile`.

    Raises:
        ExperimentError: a graph is asked for on a device that has none.
    """

    def __init__(
        self,
        way: Way,
        net: nn.Module,
        optimizer: torch.optim.Optimizer,
        loss_of: Callable[[Any, Sequence[Tensor]], Tensor],
        device: torch.device,
        compile_with: dict[str, Any] | None = None,
    ) -> None:
        if device.type == "cpu" and way in NOT_ON_A_PROCESSOR:
            raise ExperimentError(f"a step was to run as {way.value} on a processor, which has no CUDA graphs")
        self.way, self.net, self.optimizer, self.loss_of, self.device = way, net, optimizer, loss_of, device
        self.called = _made(way, net, compile_with or {})
        self._n_done = 0
        self._graph: Any = None
        self._held: tuple[Tensor, ...] = ()
        self._loss: Any = None

    def __call__(self, batch: Sequence[Tensor]) -> Tensor:
        """Train on one batch; gives its loss."""
        if self.way is not Way.GRAPH:
            return self._train(batch)
        self._n_done += 1
        if self._n_done <= N_BEFORE_CAPTURE:
            return self._beside(batch)
        if self._graph is None:
            self._capture(batch)
        for held, new in zip(self._held, batch, strict=True):
            held.copy_(new)
        self._graph.replay()
        last: Tensor = self._loss.clone()  # the next replay writes over it
        return last

    def _train(self, batch: Sequence[Tensor]) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.loss_of(self.called, batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @property
    def _cuda(self) -> Any:
        """torch.cuda, or what takes its place on the simulated card."""
        import torch

        return getattr(torch, self.device.type)

    def _beside(self, batch: Sequence[Tensor]) -> Tensor:
        """A step on a stream of its own, as before a capture."""
        side, here = self._cuda.Stream(), self._cuda.current_stream()
        side.wait_stream(here)
        stream: AbstractContextManager[object] = self._cuda.stream(side)
        with stream:
            loss = self._train(batch)
        here.wait_stream(side)
        return loss

    def _capture(self, batch: Sequence[Tensor]) -> None:
        self._held = tuple(each.clone() for each in batch)
        self._graph = self._cuda.CUDAGraph()
        self.optimizer.zero_grad()
        with self._cuda.graph(self._graph):
            self._loss = self._train(self._held)


def _made(way: Way, net: nn.Module, options: dict[str, Any]) -> Any:
    """What is called in the network's place."""
    import torch

    import gpututor

    if way is Way.SCRIPT:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # torch says that it goes; the lesson says so too
            return torch.jit.script(net)
    if way is Way.COMPILED:
        return gpututor.compile(net, **options)
    return gpututor.compile(net, mode="reduce-overhead", **options) if way is Way.BOTH else net
