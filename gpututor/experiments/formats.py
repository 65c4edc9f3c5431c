"""One training step in several number formats: fp32, TF32, and autocast to fp16 with a gradient scaler or to bf16."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

INIT_SCALE = 2.0**16  # torch.amp.GradScaler's own


class Format(Enum):
    """A number format that a step computes in; the value is what a reader sees."""

    FP32 = "fp32"
    TF32 = "TF32"
    FP16 = "fp16"
    BF16 = "bf16"

    @property
    def key(self) -> str:
        """Names its files, and is what cards call it."""
        return self.value.lower()

    @property
    def halves(self) -> bool:
        """Whether products read and write numbers of two bytes."""
        return self in (Format.FP16, Format.BF16)


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """A `with` block in which products and convolutions of fp32 numbers may use TF32, or may not."""
    import torch

    cudnn: Any = torch.backends.cudnn
    cuda: Any = torch.backends.cuda.matmul  # both get their attributes at run time
    owners = (cuda, cudnn.conv, cudnn.rnn)
    before = [owner.fp32_precision for owner in owners]
    try:
        for owner in owners:
            owner.fp32_precision = "tf32" if allowed else "ieee"
        yield
    finally:
        for owner, precision in zip(owners, before, strict=True):
            owner.fp32_precision = precision


class Training:
    """A network and its optimizer, trained in one format; call it with a function that runs it and gives the loss.

    The loss that comes back stays on the device. fp16 gets torch's GradScaler, which begins at `init_scale`; with
    `scaled` False gradients are taken as they are.
    """

    def __init__(
        self,
        number_format: Format,
        net: nn.Module,
        optimizer: torch.optim.Optimizer,
        device: torch.device,
        *,
        scaled: bool = True,
        init_scale: float = INIT_SCALE,
    ) -> None:
        import torch

        self.format, self.net, self.optimizer = number_format, net, optimizer
        self.device = device
        used = number_format is Format.FP16 and scaled
        self.scaler = torch.amp.GradScaler(device.type, enabled=used, init_scale=init_scale)
        self._dtype = torch.float16 if number_format is Format.FP16 else torch.bfloat16

    def autocast(self) -> Any:
        """The region in which the network and its loss run."""
        import torch

        return torch.autocast(self.device.type, self._dtype) if self.format.halves else nullcontext()

    def __call__(self, loss_of: Callable[[], Tensor]) -> Tensor:
        """One step."""
        with tf32(self.format is Format.TF32):
            self.optimizer.zero_grad()
            with self.autocast():
                loss = loss_of()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            return loss.detach()
