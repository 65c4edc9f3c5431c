"""What was left on: switches for finding faults, and helpers called after every step, around a training step."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
import torch.utils.deterministic
from torch import Tensor, nn

from gpututor.jobs.rules import Rule, Way
from gpututor.jobs.updates import DeepJob, optimizer
from gpututor.marking import pause

COLLECTION = "garbage collection"
FILLING: Any = torch.utils.deterministic  # a module whose attribute is a property
N_SAMPLES = 200_000  # of a data set kept as Python objects, two of them each
Step = Callable[[int], Any]


@contextmanager
def anomaly_mode() -> Iterator[None]:
    """torch.autograd.set_detect_anomaly."""
    with torch.autograd.set_detect_anomaly(True):
        yield


@contextmanager
def deterministic(*, fill: bool = True) -> Iterator[None]:
    """torch.use_deterministic_algorithms, with new memory filled as torch has it, or without."""
    before = FILLING.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    FILLING.fill_uninitialized_memory = fill
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        FILLING.fill_uninitialized_memory = before


@contextmanager
def profiled() -> Iterator[None]:
    """torch.profiler with shapes and stacks, of the host alone: a card's own events cost the card next to nothing."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True):
        yield


@contextmanager
def cache_emptied() -> Iterator[None]:
    """The allocator's cache is given back after the step."""
    yield
    torch.accelerator.empty_cache()


@contextmanager
def collected() -> Iterator[None]:
    """gc.collect() after the step, as many loops have it beside the emptied cache."""
    yield
    with pause(COLLECTION, host_only=True):
        gc.collect()


SWITCHES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "off": nullcontext,
    "blocking": nullcontext,  # a variable of the environment, read when CUDA starts
    "anomaly": anomaly_mode,
    "deterministic": deterministic,
    "unfilled": lambda: deterministic(fill=False),
    "profiler": profiled,
    "emptied": cache_emptied,
    "collected": collected,
}


class Switched:
    """A training step with one of the switches on."""

    def __init__(self, step: Step, switch: str) -> None:
        self.step, self._around = step, SWITCHES[switch]

    def __call__(self, k: int) -> Any:
        """Train once."""
        with self._around():
            return self.step(k)


def deep(device: torch.device, switch: str) -> Switched:
    """The residual network of a hundred small tensors, with fused Adam."""
    return Switched(DeepJob(device, Rule.ADAM, Way.FUSED), switch)


def resnet50(device: torch.device, switch: str, batch: int) -> Switched:
    """ResNet-50 on random pictures, with fused Adam."""
    from gpututor.workloads.vision.resnets import ResNet50

    net = ResNet50().to(device)
    adam = optimizer(Rule.ADAM, Way.FUSED, net.parameters())
    pictures = torch.randn(batch, 3, 224, 224, device=device)
    kinds = torch.randint(0, 1000, (batch,), device=device)

    def step(_k: int) -> Tensor:
        adam.zero_grad()
        loss = F.cross_entropy(net(pictures), kinds)
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        return loss.detach()

    return Switched(step, switch)


class Dilated(nn.Module):
    """Four 3x3 convolutions whose filters have gaps, as networks that label each pixel have them."""

    def __init__(self, width: int = 64, dilation: int = 2) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(width, width, 3, padding=dilation, dilation=dilation, bias=False) for _ in range(4))
        )

    def forward(self, x: Tensor) -> Tensor:
        """As many numbers as before."""
        y: Tensor = self.body(x)
        return y


def dilated(device: torch.device, switch: str, batch: int = 64) -> Switched:
    """A step of `Dilated` on features of 32 by 32 places."""
    net = Dilated().to(device)
    sgd = torch.optim.SGD(net.parameters(), 0.001)
    x = torch.randn(batch, 64, 32, 32, device=device)

    def step(_k: int) -> Tensor:
        sgd.zero_grad()
        loss: Tensor = net(x).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        sgd.step()
        return loss.detach()

    return Switched(step, switch)


class Collecting:
    """A training step after which garbage is collected, beside a data set of many Python objects.

    With `frozen` the collector leaves what was there before the training alone, until `done`.
    """

    def __init__(self, device: torch.device, *, n_samples: int, frozen: bool) -> None:
        self.step = deep(device, "collected")
        self.samples = [{"number": k, "words": [k]} for k in range(n_samples)]
        if frozen:
            gc.collect()
            gc.freeze()

    def __call__(self, k: int) -> Any:
        """Train once, and collect."""
        return self.step(k)

    def noted(self) -> dict[str, float]:
        """How many objects the collector knows, and how many of them it looks at."""
        return {"n_looked_at": float(len(gc.get_objects())), "n_frozen": float(gc.get_freeze_count())}

    def done(self) -> None:
        """Let the collector look at everything again."""
        gc.unfreeze()
        self.samples.clear()


class Validated:
    """ResNet-50 looks at `n` batches of held-out pictures; a call is one such validation.

    With `graphs` the losses are added up as they come, and each keeps the graph of its batch alive.
    """

    def __init__(self, device: torch.device, *, graphs: bool, n: int, batch: int) -> None:
        from gpututor.workloads.vision.resnets import ResNet50

        self.net = ResNet50().to(device)
        self._graphs, self._n = graphs, n
        self._pictures = torch.randn(batch, 3, 224, 224, device=device)
        self._kinds = torch.randint(0, 1000, (batch,), device=device)

    def __call__(self, _k: int) -> Tensor:
        """The mean loss, left on the device."""
        with torch.set_grad_enabled(self._graphs):
            total = torch.zeros((), device=self._pictures.device)
            for _ in range(self._n):
                total = total + F.cross_entropy(self.net(self._pictures), self._kinds)
        return total.detach() / self._n
