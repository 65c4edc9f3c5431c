"""HRNet: branches of up to four resolutions that exchange what they found after every few blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from gpututor.workloads.setting import Workload
from gpututor.workloads.vision.layers import Head, conv_norm
from gpututor.workloads.vision.recipes import workload
from gpututor.workloads.vision.resnets import Basic, Bottleneck

# Wang et al. 2019, arXiv 1908.07919, section 3 and appendix (classification head); modules of the stages 2 to 4.
MODULES = (1, 4, 3)
HEAD = (128, 256, 512, 1024)


def _narrow(width_in: int, width: int, halvings: int) -> nn.Sequential:
    """3x3 convolutions with stride 2; the last one changes the width and has no activation."""
    parts: list[nn.Module] = [conv_norm(width_in, width_in, 3, 2) for _ in range(halvings - 1)]
    return nn.Sequential(*parts, conv_norm(width_in, width, 3, 2, act=None))


class Exchange(nn.Module):
    """Four basic blocks in each branch, then each branch becomes the sum of all of them, resized."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*(Basic(width, width, 1) for _ in range(4))) for width in widths)
        self.fusions = nn.ModuleList(
            nn.ModuleList(self._path(widths, source, target) for source in range(len(widths)))
            for target in range(len(widths))
        )

    @staticmethod
    def _path(widths: Sequence[int], source: int, target: int) -> nn.Module:
        if source == target:
            return nn.Identity()
        if source < target:
            return _narrow(widths[source], widths[target], target - source)
        larger = nn.Upsample(scale_factor=2 ** (source - target), mode="nearest")
        return nn.Sequential(conv_norm(widths[source], widths[target], act=None), larger)

    def forward(self, seen: list[Tensor]) -> list[Tensor]:
        """As many branches, of the same shapes."""
        seen = [branch(x) for branch, x in zip(self.branches, seen, strict=True)]
        fused = []
        for paths in self.fusions:
            first, *others = zip(paths, seen, strict=True)  # type: ignore[call-overload]
            total = first[0](first[1])
            for path, x in others:
                total = total + path(x)
            fused.append(nn.functional.relu(total))
        return fused


class HrNet(nn.Module):
    """HRNet whose finest branch has `width` channels, with its classification head; timm/models/hrnet.py."""

    def __init__(self, width: int, classes: int = 1000) -> None:
        super().__init__()
        widths = [width << k for k in range(4)]
        layers = [Bottleneck(64 if k == 0 else 256, 64, 256, 1) for k in range(4)]
        self.stem = nn.Sequential(*conv_norm(3, 64, 3, 2), *conv_norm(64, 64, 3, 2), *layers)
        self.first = nn.ModuleList([conv_norm(256, widths[0], 3), conv_norm(256, widths[1], 3, 2)])
        self.coarser = nn.ModuleList(conv_norm(widths[k], widths[k + 1], 3, 2) for k in (1, 2))
        self.stages = nn.ModuleList(
            nn.Sequential(*(Exchange(widths[: k + 2]) for _ in range(n))) for k, n in enumerate(MODULES)
        )
        self.grown = nn.ModuleList(Bottleneck(w, wide // 4, wide, 1) for w, wide in zip(widths, HEAD, strict=True))
        self.shrunk = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU(True)) for a, b in pairwise(HEAD)
        )
        self.last = nn.Sequential(
            nn.Conv2d(HEAD[-1], 2048, 1), nn.BatchNorm2d(2048), nn.ReLU(True), Head(2048, classes)
        )

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        x = self.stem(pictures)
        seen = self.stages[0]([opened(x) for opened in self.first])
        for coarser, stage in zip(self.coarser, list(self.stages)[1:], strict=True):
            seen = stage([*seen, coarser(seen[-1])])
        total = self.grown[0](seen[0])
        for grow, shrink, branch in zip(list(self.grown)[1:], self.shrunk, seen[1:], strict=True):
            total = grow(branch) + shrink(total)
        scores: Tensor = self.last(total)
        return scores


def _hrnet(width: int) -> Workload:
    source = "Wang et al. 2019, arXiv 1908.07919; timm/models/hrnet.py"
    return workload(f"hrnet_w{width}", f"HRNet-W{width}", source, lambda setting: HrNet(width), 128)


HRNETS = tuple(_hrnet(width) for width in (18, 32, 48))
