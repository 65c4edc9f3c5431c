"""ResNets for ImageNet's pictures: plain, wide, with grouped convolutions, with squeeze and excitation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Option
from gpututor.workloads.vision.layers import Head, SqueezeExcite, SqueezeExciteLinear, conv_norm, rounded
from gpututor.workloads.vision.recipes import workload

F = nn.functional
Blocks = tuple[int, ...]
HE = "He et al. 2015, arXiv 1512.03385, table 1"
NVIDIA = "NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets, image_classification/models/resnet.py"


class Bottleneck(nn.Module):
    """The block of 50 layers and more: 1x1, 3x3 and 1x1 convolutions around a sum; the stride is in the 3x3 one."""

    def __init__(self, width_in: int, inner: int, width: int, stride: int, groups: int = 1, squeeze: str = "") -> None:
        super().__init__()
        self.path = nn.Sequential(
            *conv_norm(width_in, inner),
            *conv_norm(inner, inner, 3, stride, groups=groups),
            *conv_norm(inner, width, act=None),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or width_in != width:
            self.shortcut = conv_norm(width_in, width, 1, stride, act=None)
        self.weights: nn.Module | None = None
        if squeeze == "timm":  # a sixteenth of the channels; seresnext… in timm/models/resnet.py
            self.path.append(SqueezeExcite(width, rounded(width / 16, least_share=0)))
        if squeeze == "nvidia":  # 16 channels in every block
            self.weights = SqueezeExciteLinear(width, 16, nn.ReLU)

    def forward(self, x: Tensor) -> Tensor:
        """`width` channels, and the size divided by the stride."""
        seen = self.path(x)
        if self.weights is not None:
            return F.relu(torch.addcmul(self.shortcut(x), seen, self.weights(seen)), inplace=True)
        seen += self.shortcut(x)
        return F.relu(seen, inplace=True)


class Basic(nn.Module):
    """The block of 18 and 34 layers: two 3x3 convolutions around a sum."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(*conv_norm(width_in, width, 3, stride), *conv_norm(width, width, 3, act=None))
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or width_in != width:
            self.shortcut = conv_norm(width_in, width, 1, stride, act=None)

    def forward(self, x: Tensor) -> Tensor:
        """`width` channels, and the size divided by the stride."""
        seen = self.path(x)
        seen += self.shortcut(x)
        return F.relu(seen, inplace=True)


class ResNet(nn.Module):
    """A ResNet of `blocks` in each stage, every stage twice as wide and half as large as the one before.

    `inner` is how many times wider than usual the 3x3 convolutions are; without it the blocks are the basic ones.
    """

    def __init__(
        self,
        blocks: Blocks,
        inner: float = 1,
        groups: int = 1,
        squeeze: str = "",
        *,
        basic: bool = False,
        classes: int = 1000,
        width: int = 64,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv_norm(3, width, 7, 2), nn.MaxPool2d(3, 2, 1))
        parts: list[nn.Module] = []
        width_in = width
        for stage, n_blocks in enumerate(blocks):
            narrow = width << stage
            for k in range(n_blocks):
                stride = 2 if stage and not k else 1
                if basic:
                    parts.append(Basic(width_in, narrow, stride))
                else:
                    parts.append(Bottleneck(width_in, round(narrow * inner), 4 * narrow, stride, groups, squeeze))
                width_in = narrow if basic else 4 * narrow
        self.body, self.head = nn.Sequential(*parts), Head(width_in, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        scores: Tensor = self.head(self.body(self.stem(pictures)))
        return scores


class ResNet50(ResNet):
    """ResNet-50 for 224x224 pictures by default; `width` and `blocks` make a smaller one.

    Source: He et al. 2015, "Deep Residual Learning for Image Recognition", table 1; 25.6 million parameters.
    """

    def __init__(self, classes: int = 1000, width: int = 64, blocks: Blocks = (3, 4, 6, 3)) -> None:
        super().__init__(blocks, classes=classes, width=width)


D50, D101, D152 = (3, 4, 6, 3), (3, 4, 23, 3), (3, 8, 36, 3)
ZAGORUYKO = "Zagoruyko and Komodakis 2016, arXiv 1605.07146: twice the inner width"
XIE = "Xie et al. 2016, arXiv 1611.05431, table 1: 32 groups of 4 channels, twice the inner width in all"
HU = "Hu et al. 2017, arXiv 1709.01507"


def _nvidias(update_batch: int) -> dict[str, Option]:
    return {"recipe": "dle", "torch": "1.9", "update_batch": update_batch}  # container 21.03 has torch 1.9.0a0


RESNET50 = workload("resnet50", "ResNet-50", HE, lambda setting: ResNet50())
_OF_TIMM = (
    workload("resnet18", "ResNet-18", HE, lambda setting: ResNet((2, 2, 2, 2), basic=True)),
    workload("resnet34", "ResNet-34", HE, lambda setting: ResNet(D50, basic=True)),
    RESNET50,
    workload("resnet101", "ResNet-101", HE, lambda setting: ResNet(D101)),
    workload("resnet152", "ResNet-152", HE, lambda setting: ResNet(D152)),
    workload("wide_resnet50_2", "Wide ResNet-50", ZAGORUYKO, lambda setting: ResNet(D50, 2)),
    workload("wide_resnet101_2", "Wide ResNet-101", ZAGORUYKO, lambda setting: ResNet(D101, 2)),
    workload("resnext50_32x4d", "ResNeXt-50", XIE, lambda setting: ResNet(D50, 2, 32)),
    workload("resnext101_32x4d", "ResNeXt-101", XIE, lambda setting: ResNet(D101, 2, 32)),
    workload("seresnext50_32x4d", "SE-ResNeXt-50 of timm", HU, lambda setting: ResNet(D50, 2, 32, "timm")),
    workload("seresnext101_32x4d", "SE-ResNeXt-101 of timm", HU, lambda setting: ResNet(D101, 2, 32, "timm")),
)
_OF_NVIDIA = (  # update_batch: optimizer_batch_size in configs.yml there; 896 for resnet50 in fp32 on a DGX-1
    workload("resnet50v1.5", "ResNet-50 of NVIDIA", NVIDIA, lambda setting: ResNet50(), 256, _nvidias(2048)),
    workload(
        "resnext101-32x4d", "ResNeXt-101 of NVIDIA", NVIDIA, lambda setting: ResNet(D101, 2, 32), 128, _nvidias(1024)
    ),
    workload(
        "se-resnext101-32x4d",
        "SE-ResNeXt-101 of NVIDIA",
        NVIDIA,
        lambda setting: ResNet(D101, 2, 32, "nvidia"),
        128,
        _nvidias(1024),
    ),
    workload(
        "resnet50_lambda",
        "ResNet-50 as Lambda's benchmark runs it",
        NVIDIA,
        lambda setting: ResNet50(),
        256,
        {"recipe": "lambda", "torch": "1.13"},
    ),
)
RESNETS = (*_OF_TIMM, *_OF_NVIDIA)
