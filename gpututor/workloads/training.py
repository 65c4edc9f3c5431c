"""From a network to steps: precision, layout, torch.compile, DistributedDataParallel, optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Setting, Step

Parallel = Callable[[nn.Module], nn.Module]
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


@contextmanager
def number_formats(setting: Setting) -> Iterator[None]:
    """A `with` block in which fp32 products use TF32 exactly where `setting` says; autocast formats are its steps' own.

    With "amp", what stays fp32 keeps torch's usual rule: TF32 for convolutions, none for matrix products.
    """
    tf32 = setting.precision == "tf32"
    in_cudnn = tf32 or setting.precision != "fp32"
    cudnn = torch.backends.cudnn
    owners = (torch.backends.cuda.matmul, cudnn.conv, cudnn.rnn)  # type: ignore[attr-defined]  # made at run time
    before = [owner.fp32_precision for owner in owners]  # the older allow_tf32 can't be read once this was set
    try:
        for owner, allowed in zip(owners, (tf32, in_cudnn, in_cudnn), strict=True):
            owner.fp32_precision = "tf32" if allowed else "ieee"
        yield
    finally:
        for owner, precision in zip(owners, before, strict=True):
            owner.fp32_precision = precision


def data_dtype(setting: Setting) -> torch.dtype:
    """The format of inputs and weights."""
    return DTYPES.get(setting.precision, torch.float32)


def autocast(setting: Setting, device: str) -> Any:
    """torch's autocast as `setting` says, or nothing."""
    return torch.autocast(device, DTYPES[setting.autocast]) if setting.autocast else nullcontext()


def prepared(net: nn.Module, setting: Setting, parallel: Parallel = nn.parallel.DistributedDataParallel) -> nn.Module:
    """The network in the setting's format, layout and mode, and on several cards made `parallel`."""
    net = net.to(data_dtype(setting))
    if setting.layout == "nhwc":
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    net.train(setting.kind != "infer")
    if setting.n_cards > 1:
        net = parallel(net)
    if setting.mode != "eager":
        net = torch.compile(net, mode="reduce-overhead" if setting.mode == "graphs" else None)  # type: ignore[assignment]
    return net


def pictures(setting: Setting, device: str, channels: int, height: int, width: int) -> Tensor:
    """A batch of pictures (batch, channels, height, width) in the setting's format and layout."""
    assert setting.batch is not None
    made = torch.randn(setting.batch, channels, height, width, device=device, dtype=data_dtype(setting))
    return made.contiguous(memory_format=torch.channels_last) if setting.layout == "nhwc" else made


def steps(
    net: nn.Module,
    loss_of: Callable[[], Tensor],
    setting: Setting,
    device: str,
    optimizer: torch.optim.Optimizer | None,
    clip_norm: float | None = None,
) -> Step:
    """The step that `setting.kind` asks for; `loss_of` runs the network forward and gives its loss (or its output).

    Without an optimizer, "train" is forward and backward alone.
    """
    if setting.kind == "infer":
        return _inference(loss_of, setting, device)
    scaler = torch.amp.GradScaler(device, enabled=setting.precision == "amp")
    updating = optimizer if setting.kind == "train" else None

    def step(k: int) -> Tensor:
        net.zero_grad(set_to_none=True)
        with autocast(setting, device):
            loss = loss_of()
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        if updating is not None:
            if clip_norm is not None:
                scaler.unscale_(updating)
                torch.nn.utils.clip_grad_norm_(net.parameters(), clip_norm)
            scaler.step(updating)
            scaler.update()
        return loss

    return step


def _inference(output_of: Callable[[], Any], setting: Setting, device: str) -> Step:
    def step(k: int) -> Any:
        with torch.no_grad(), autocast(setting, device):
            output_of()
        return None

    return step
