"""nnU-Net in two and three dimensions, as NVIDIA trains it on brain tumours.

Source of every fact here: NVIDIA/DeepLearningExamples PyTorch/Segmentation/nnUNet at 729963d, files named below, and
monai/networks/nets/dynunet.py of Project-MONAI/MONAI, whose DynUNet it builds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import autocast, data_dtype, prepared
from gpututor.workloads.waiting import wait_for

F = nn.functional
N_CHANNELS, N_CLASSES = 4, 4  # four modalities; background and three tumour classes (Task01 of the MSD)
PATCH = {2: (192, 160), 3: (128, 128, 128)}  # data_preprocessing/configs.py, task 01
WIDTHS = {2: (32, 64, 128, 256, 512, 512), 3: (32, 64, 128, 256, 320, 320)}  # DynUNet's own; depth 5 (utils/args.py)
CONV = {2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
NORM = {2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}


def _block(dim: int, n_in: int, n_out: int, stride: int = 1) -> nn.Sequential:
    """Twice a 3-wide convolution without bias, instance norm and leaky ReLU; the stride is in the first."""
    parts: list[nn.Module] = []
    for n, step in ((n_in, stride), (n_out, 1)):
        parts += [CONV[dim](n, n_out, 3, step, 1, bias=False), NORM[dim](n_out, affine=True), nn.LeakyReLU(0.01)]
    return nn.Sequential(*parts)


class NnUnet(nn.Module):
    """Six levels down by halves and up again by transposed convolutions; without deep supervision, as benchmarked."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        widths = WIDTHS[dim]
        pairs = list(pairwise(widths))
        self.entry = _block(dim, N_CHANNELS, widths[0])
        self.down = nn.ModuleList(_block(dim, a, b, 2) for a, b in pairs)
        self.up = nn.ModuleList(TRANSPOSED[dim](b, a, 2, 2) for a, b in reversed(pairs))
        self.join = nn.ModuleList(_block(dim, 2 * a, a) for a, _ in reversed(pairs))
        self.out = CONV[dim](widths[0], N_CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (picture, class, position …)."""
        kept = [self.entry(x)]
        for block in self.down:
            kept.append(block(kept[-1]))
        x = kept.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat((up(x), kept.pop()), dim=1))
        scores: Tensor = self.out(x)
        return scores


def dice_and_cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Dice over the whole batch without the background, and cross-entropy (nnunet/loss.py; MONAI's DiceCELoss)."""
    entropy = F.cross_entropy(scores, labels.squeeze(1).long())
    shares = torch.softmax(scores, 1)
    marked = torch.zeros_like(scores, dtype=torch.float32).scatter_(1, labels.long(), 1.0)
    shares, marked = shares[:, 1:], marked[:, 1:]
    over = [0, *range(2, scores.dim())]
    both = torch.sum(marked * shares, dim=over)
    either = torch.sum(marked, dim=over) + torch.sum(shares, dim=over)
    return (1.0 - (2.0 * both + 1e-5) / (either + 1e-5)).mean() + entropy


def _nnunet(dim: int, setting: Setting, device: str) -> Job:
    """The training step under Lightning (nnunet/nn_unet.py): the loss is read each step, Adam is fused, no clipping.

    With amp in three dimensions the layout is channels-last, as scripts/benchmark.py sets it. The loader (DALI) leaves
    batches on the card; what it does there to augment them is not here.
    """
    assert setting.batch is not None
    sides = PATCH[dim]
    with torch.device(device):
        net = prepared(NnUnet(dim), replace(setting, layout="nchw"))
        x = torch.randn(setting.batch, N_CHANNELS, *sides, dtype=data_dtype(setting))
        if setting.layout == "nhwc":
            form = torch.channels_last if dim == 2 else torch.channels_last_3d
            net, x = net.to(memory_format=form), x.contiguous(memory_format=form)  # type: ignore[call-overload]
        labels = torch.zeros(setting.batch, 1, *sides, dtype=torch.uint8)
        adam = torch.optim.Adam(net.parameters(), lr=8e-4, weight_decay=1e-4, fused=True)
    scaler = torch.amp.GradScaler(device, enabled=setting.precision == "amp")

    def train(k: int) -> Tensor:
        with autocast(setting, device):
            loss = dice_and_cross_entropy(net(x), labels)
        loss.item()
        adam.zero_grad()
        torch.autograd.backward(scaler.scale(loss))
        if setting.kind == "train":
            scaler.step(adam)
            scaler.update()
        wait_for(device)
        return loss

    def infer(k: int) -> None:
        with torch.no_grad(), autocast(setting, device):
            net(x)
        wait_for(device)

    steps: dict[str, Callable[[int], object]] = {"train": train, "gradients": train, "infer": infer}
    return Job(steps[setting.kind], setting.batch)


def _workload(dim: int, batch: int) -> Workload:
    return Workload(
        f"nnunet_{dim}d",
        f"nnU-Net in {dim} dimensions, brain tumours, patches of {'x'.join(map(str, PATCH[dim]))}",
        "NVIDIA/DeepLearningExamples PyTorch/Segmentation/nnUNet at 729963d; MONAI's DynUNet",
        "img",
        batch,
        lambda setting, device: _nnunet(dim, setting, device),
    )


NNUNET_2D, NNUNET_3D = _workload(2, 64), _workload(3, 2)
