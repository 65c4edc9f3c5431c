"""A twin of a machine with a GPU: jobs really run, on the CPU, and each op is a launch on the fake GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.utils._python_dispatch import TorchDispatchMode

from gpututor.experiments.measured import Bench
from tests.measure.fake_gpu import FakeGpu

PYTHON_US, KERNEL_US = 11, 4
VIEWS = ("view", "t", "transpose", "select", "unsqueeze", "squeeze", "expand", "detach", "alias", "slice")


class _Launching(TorchDispatchMode):
    """Every op but a view costs the host 11 µs and a launch, and the fake GPU 4 µs; reading a number waits for it."""

    def __init__(self, gpu: FakeGpu) -> None:
        super().__init__()
        self.gpu = gpu

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__.lstrip("_")
        if name == "local_scalar_dense":
            self.gpu.synchronize()
        elif name not in VIEWS:
            self.gpu.think(PYTHON_US)
            self.gpu.launch(KERNEL_US, name)
        return func(*args, **(kwargs or {}))


@contextmanager
def machine_with_gpu() -> Iterator[Bench]:
    """A bench on which whatever torch does on the CPU is recorded as work of a V100."""
    gpu = FakeGpu()
    with _Launching(gpu):
        yield Bench("cpu", gpu.as_gpu())
