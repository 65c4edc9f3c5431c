"""Photographs to train on: JPEG files about as large as ImageNet's, made on the spot, and the dataset that reads them.

Reading one is what torchvision's recipe for ImageNet does: open, decode, cut a random part out, scale it to the
network's size, mirror every second one. Only the last step differs: pictures stay bytes until they are on the card.
Which part is cut out is drawn from the picture's number, so it doesn't matter which process draws it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import Dataset, get_worker_info

from gpututor.workloads.vision.resnets import ResNet

WIDTH_PX, HEIGHT_PX = 440, 330
"""Our choice: of ImageNet's training pictures most have 500 by 375, some are much smaller; with these a processor of
2020 and a V100 are evenly matched, so that a worker more or less is seen."""
QUALITY = 90  # our choice
SIDE_PX = 224  # He et al. 2015, section 3.4
LEAST_SHARE, MOST_SHARE = 0.08, 1.0  # of the picture's area; Szegedy et al. 2014, section 6, and torchvision's recipe
N_KINDS = 4
HUES = ((200, 60, 50), (60, 170, 70), (60, 80, 200), (210, 190, 60))  # what tells the kinds apart: the main colour
COARSE_PX, GRAIN = 24, 9.0  # soft blobs of this size and a camera's noise, so that there is something to decode
IN_TRAINING_PROCESS = -1


def write_photographs(folder: Path, n: int, seed: int = 0) -> list[Path]:
    """The paths of `n` new JPEG files in `folder`; number k is of kind k modulo `N_KINDS`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for k in range(n):
        path = folder / f"{k:05d}.jpg"
        _photograph(np.random.default_rng((seed, k)), HUES[k % N_KINDS]).save(path, "JPEG", quality=QUALITY)
        paths.append(path)
    return paths


def _photograph(rng: np.random.Generator, hue: tuple[int, int, int]) -> Image.Image:
    """Soft blobs around one colour, with grain."""
    shape = (HEIGHT_PX // COARSE_PX + 1, WIDTH_PX // COARSE_PX + 1, 3)
    blobs = (np.array(hue) + rng.normal(0, 45, shape)).clip(0, 255).astype(np.uint8)
    soft = np.asarray(Image.fromarray(blobs).resize((WIDTH_PX, HEIGHT_PX), Image.Resampling.BICUBIC), np.int16)
    grain = rng.normal(0, GRAIN, (HEIGHT_PX, WIDTH_PX, 1)).astype(np.int16)
    return Image.fromarray((soft + grain).clip(0, 255).astype(np.uint8))


class Photographs(Dataset[tuple[Tensor, int, int]]):
    """`n` pictures to train on, from files that are read again and again in turn.

    One is (bytes as a tensor of 3 by `side_px` by `side_px`, kind, number of the worker that read it, or
    `IN_TRAINING_PROCESS`). With `smoothed` it is also blurred by torch, on as many threads as torch may use:
    the kind of step that brings threads of its own into a worker. With `halved` the decoder leaves half of the pixels
    out each way, which JPEG allows at a part of the price.
    """

    def __init__(
        self, paths: Sequence[Path], n: int, *, side_px: int = SIDE_PX, smoothed: bool = False, halved: bool = False
    ) -> None:
        self.paths, self.n, self.side_px = tuple(map(str, paths)), n, side_px
        self.smoothed, self.halved = smoothed, halved

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: int) -> tuple[Tensor, int, int]:
        which = k % len(self.paths)
        drawn = random.Random(k)
        with Image.open(self.paths[which]) as file:
            if self.halved:
                file.draft("RGB", (file.width // 2, file.height // 2))
            picture = file.convert("RGB").resize(
                (self.side_px, self.side_px), Image.Resampling.BILINEAR, box=cut_out(drawn, *file.size)
            )
        if drawn.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()
        worker = get_worker_info()
        by = IN_TRAINING_PROCESS if worker is None else worker.id
        return (blurred(pixels) if self.smoothed else pixels), which % N_KINDS, by


def cut_out(drawn: random.Random, width: int, height: int) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a random part of a picture, of 8 to 100 % of its area and its own proportions."""
    scale = drawn.uniform(LEAST_SHARE, MOST_SHARE) ** 0.5
    left, top = (drawn.uniform(0, (1 - scale) * size) for size in (width, height))
    return left, top, left + scale * width, top + scale * height


def blurred(pixels: Tensor) -> Tensor:
    """A picture of bytes, each the mean of the 9 by 9 around it."""
    smooth = nn.functional.avg_pool2d(pixels.float(), 9, stride=1, padding=4)
    return smooth.round().to(torch.uint8)


def small_network() -> nn.Module:
    """A ResNet of one thin block a stage: little enough arithmetic for a processor."""
    return ResNet((1, 1, 1, 1), basic=True, classes=N_KINDS, width=16)
