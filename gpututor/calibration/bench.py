"""The GPU to calibrate, and the calls that keep it busy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpututor.measure.cuda import Gpu

MIB = 2**20
Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """A GPU with makers of calls; a call launches its work and comes back.

    `network(grad)` is an inference of the small network, `tiny()` the smallest kernel, `product(format, side)` one of
    two square matrices, `copy(n_bytes)` from the card's memory to itself, `copy_to_gpu(n_bytes, pinned)` from the
    host's. `formats` are those whose products are worth a measure.
    """

    gpu: Gpu
    formats: tuple[str, ...]
    network: Callable[[bool], Call]
    tiny: Callable[[], Call]
    product: Callable[[str, int], Call]
    copy: Callable[[int], Call]
    copy_to_gpu: Callable[[int, bool], Call]


def this_bench() -> Bench:
    """This process's own CUDA device.

    Raises:
        RuntimeError: torch can't reach it.
    """
    import torch

    from gpututor.calibration.network import forward
    from gpututor.measure.cuda import this_gpu

    device = "cuda"
    capability = torch.cuda.get_device_capability()
    formats = ("fp32", "fp16", *(("tf32", "bf16") if capability >= (8, 0) else ()))  # Ampere brought both
    dtypes = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

    def tiny() -> Call:
        one = torch.zeros(1, device=device)
        return one.zero_

    def product(number_format: str, side: int) -> Call:
        a, b = (torch.randn(side, side, device=device).to(dtypes[number_format]) for _ in range(2))
        out = torch.empty_like(a)

        def call() -> None:
            torch.backends.cuda.matmul.allow_tf32 = number_format == "tf32"
            torch.mm(a, b, out=out)

        return call

    def copy(n_bytes: int) -> Call:
        source = torch.empty(n_bytes, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    def copy_to_gpu(n_bytes: int, pinned: bool) -> Call:
        source = torch.zeros(n_bytes, dtype=torch.uint8, pin_memory=pinned)
        target = torch.empty(n_bytes, dtype=torch.uint8, device=device)
        return lambda: target.copy_(source, non_blocking=pinned)

    return Bench(this_gpu(), formats, lambda grad: forward(device, grad=grad), tiny, product, copy, copy_to_gpu)
