"""What NVIDIA's ConvNets do with a batch before the network sees it, and the loss that goes with it.

Source: NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets, image_classification/dataloaders.py and mixup.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Setting
from gpututor.workloads.training import data_dtype

F = nn.functional
MEAN, SPREAD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # ImageNet's, of bytes; dataloaders.py there
MIXED_SMOOTHING = 0.1  # configs.yml there


def batches(setting: Setting, device: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches without end: bytes copied from pinned memory and normalized in a side stream, one batch ahead."""
    assert setting.batch is not None
    gpu, side, dtype = torch.get_device_module(device), int(setting.options["side"]), data_dtype(setting)
    layout = torch.channels_last if setting.layout == "nhwc" else torch.contiguous_format
    stored = torch.empty(setting.batch, 3, side, side, dtype=torch.uint8, memory_format=layout)
    labels = torch.zeros(setting.batch, dtype=torch.long)
    if device != "cpu":
        stored, labels = stored.pin_memory(), labels.pin_memory()
    mean, spread = (torch.tensor(f, device=device, dtype=dtype).view(1, 3, 1, 1) for f in (MEAN, SPREAD))
    stream = gpu.Stream()
    ready = None
    while True:
        with gpu.stream(stream):
            ahead = stored.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            seen = ahead[0].to(dtype).sub_(mean).div_(spread)
        if ready is not None:
            yield ready
        gpu.current_stream().wait_stream(stream)
        ready = seen, ahead[1]


def one_hot_mixed(seen: Tensor, targets: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Mixup: each picture with a share of another one, and both labels by the same shares."""
    with torch.no_grad():
        share = 0.9
        order = torch.randperm(len(seen)).to(seen.device)
        wanted = torch.zeros(len(seen), classes, device=seen.device).scatter(1, targets.unsqueeze(1), 1.0)
        return share * seen + (1 - share) * seen[order, :], share * wanted + (1 - share) * wanted[order, :]


def mixed_loss(scores: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
    """Cross entropy with mixed labels, smoothed, in fp32."""
    logs = F.log_softmax(scores.float(), dim=-1)
    hit = (-logs * wanted.float()).sum(-1)
    loss: Tensor = ((1 - smoothing) * hit + smoothing * -logs.mean(dim=-1)).mean()
    return loss
