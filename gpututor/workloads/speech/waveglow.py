"""WaveGlow: sound from spectrograms by twelve steps of an invertible flow.

Source of every fact here: NVIDIA/DeepLearningExamples PyTorch/SpeechSynthesis/Tacotron2 at 729963d, waveglow/model.py,
loss_function.py and arg_parser.py, train.py.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import autocast, prepared
from gpututor.workloads.waiting import wait_for

F = nn.functional
N_MELS, N_FLOWS, GROUP, WIDTH, N_LAYERS = 80, 12, 8, 512, 8
EARLY_EVERY, EARLY = 4, 2  # after every fourth flow two channels leave early


class Mixing(nn.Module):
    """An invertible 1x1 convolution and the logarithm of its determinant."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(n, n, 1, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mixed channels, and the determinant's part of the loss."""
        weight = self.conv.weight.squeeze(-1).float()
        return self.conv(x), x.shape[0] * x.shape[2] * torch.logdet(weight.unsqueeze(0)).squeeze()


class WaveNet(nn.Module):
    """Eight dilated convolutions, gated, each told the spectrogram."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.start = weight_norm(nn.Conv1d(n, WIDTH, 1))
        self.dilated = nn.ModuleList(
            weight_norm(nn.Conv1d(WIDTH, 2 * WIDTH, 3, dilation=2**k, padding=2**k)) for k in range(N_LAYERS)
        )
        self.told = nn.ModuleList(weight_norm(nn.Conv1d(N_MELS * GROUP, 2 * WIDTH, 1)) for _ in range(N_LAYERS))
        widths = (2 * WIDTH,) * (N_LAYERS - 1) + (WIDTH,)
        self.on = nn.ModuleList(weight_norm(nn.Conv1d(WIDTH, width, 1)) for width in widths)
        self.end = nn.Conv1d(WIDTH, 2 * n, 1)

    def forward(self, x: Tensor, mels: Tensor) -> Tensor:
        """Shift and scale for the other half of the channels."""
        x = self.start(x)
        total: Tensor | None = None
        for dilated, told, on in zip(self.dilated, self.told, self.on, strict=True):
            both = dilated(x) + told(mels)
            out = on(torch.tanh(both[:, :WIDTH]) * torch.sigmoid(both[:, WIDTH:]))
            if out.shape[1] > WIDTH:
                x = out[:, :WIDTH] + x
                out = out[:, WIDTH:]
            total = out if total is None else total + out
        found: Tensor = self.end(total)
        return found


class WaveGlow(nn.Module):
    """The whole flow, in the direction of training."""

    def __init__(self) -> None:
        super().__init__()
        self.upsample = nn.ConvTranspose1d(N_MELS, N_MELS, 1024, stride=256)
        left = [GROUP - EARLY * (k // EARLY_EVERY) for k in range(N_FLOWS)]
        self.mixing = nn.ModuleList(Mixing(n) for n in left)
        self.nets = nn.ModuleList(WaveNet(n // 2) for n in left)

    def forward(self, mels: Tensor, sound: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """The sound as noise, and what the loss needs: scales and determinants."""
        told = self.upsample(mels)[:, :, : sound.shape[1]]
        told = told.unfold(2, GROUP, GROUP).permute(0, 2, 1, 3).contiguous().flatten(2).permute(0, 2, 1)
        x = sound.unfold(1, GROUP, GROUP).permute(0, 2, 1)
        early, scales, determinants = [], [], []
        for k, (mixing, net) in enumerate(zip(self.mixing, self.nets, strict=True)):
            if k and k % EARLY_EVERY == 0:
                early.append(x[:, :EARLY])
                x = x[:, EARLY:]
            x, determinant = mixing(x)
            half = x.shape[1] // 2
            found = net(x[:, :half], told)
            scale = found[:, half:]
            x = torch.cat([x[:, :half], torch.exp(scale) * x[:, half:] + found[:, :half]], 1)
            scales.append(scale)
            determinants.append(determinant)
        return torch.cat([*early, x], 1), scales, determinants


def flow_loss(found: tuple[Tensor, list[Tensor], list[Tensor]]) -> Tensor:
    """How unlikely the sound is, a number."""
    noise, scales, determinants = found
    scale, determinant = torch.sum(scales[0]), determinants[0]
    for a, b in zip(scales[1:], determinants[1:], strict=True):
        scale, determinant = scale + torch.sum(a), determinant + b
    return (torch.sum(noise * noise) / 2 - scale - determinant) / noise.numel()


def _waveglow(setting: Setting, device: str) -> Job:
    n = setting.batch
    assert n is not None
    n_samples = int(setting.options["segment"])
    mels, sound, counted = torch.zeros(n, N_MELS, n_samples // 256 + 1), torch.zeros(n, n_samples), torch.zeros(n)
    with torch.device(device):
        net = prepared(WaveGlow(), setting)
        adam = torch.optim.Adam(net.parameters(), lr=1e-4, foreach=False)
    scaler = torch.amp.GradScaler(device, enabled=setting.precision == "amp")

    def loss_of() -> Tensor:
        given = mels.to(device).float(), sound.to(device).float()
        n_counted = torch.sum(counted.to(device))
        with autocast(setting, device):
            loss = flow_loss(net(*given))
        loss.item()
        n_counted.item()
        return loss

    def train(k: int) -> Tensor:
        wait_for(device)
        net.zero_grad()
        loss = loss_of()
        torch.autograd.backward(scaler.scale(loss))
        if setting.kind == "train":
            scaler.unscale_(adam)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 65504.0, foreach=False)
            scaler.step(adam)
            scaler.update()
        wait_for(device)
        return loss

    def infer(k: int) -> None:  # the direction of training, as its validation does
        with torch.no_grad():
            loss_of()

    steps: dict[str, Callable[[int], object]] = {"train": train, "gradients": train, "infer": infer}
    return Job(steps[setting.kind], n * n_samples)


WAVEGLOW = Workload(
    "waveglow",
    "WaveGlow, LJ Speech in segments, counted in samples of sound; the loader left out",
    "NVIDIA/DeepLearningExamples PyTorch/SpeechSynthesis/Tacotron2 at 729963d",
    "sample",
    10,
    _waveglow,
    {"segment": 8000},  # platform/DGX1_waveglow_AMP_1NGPU_train.sh there: batch 10, segments of 8,000
)
