"""Inverted bottlenecks: MobileNet V2 and V3, EfficientNet as timm and as NVIDIA write it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from gpututor.workloads.setting import Option, Workload
from gpututor.workloads.vision.layers import Head, SqueezeExcite, SqueezeExciteLinear, conv_norm, rounded
from gpututor.workloads.vision.recipes import workload

Squeeze = Callable[[int, int], nn.Module]  # from the inner width and the block's width in


class Weighed(nn.Module):
    """Squeeze and excitation of NVIDIA's EfficientNet: the weights times what they weigh."""

    def __init__(self, width: int, squeezed: int) -> None:
        super().__init__()
        self.weights = SqueezeExciteLinear(width, squeezed, nn.SiLU)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        weighed: Tensor = self.weights(x) * x
        return weighed


@dataclass(frozen=True, slots=True)
class Stage:
    """`n` blocks of one kind; the first one has the stride. `wider` is the inner width over the width in.

    Without an expansion (`wider` 0) the depthwise convolution comes first.
    """

    n: int
    size: int
    stride: int
    wider: float
    width: int
    act: type[nn.Module]
    squeeze: Squeeze | None = None


class Inverted(nn.Module):
    """A 1x1 convolution that widens, a depthwise one, squeeze and excitation if any, a 1x1 one that narrows, a sum."""

    def __init__(self, width_in: int, stage: Stage, stride: int) -> None:
        super().__init__()
        inner = rounded(width_in * stage.wider) if stage.wider else width_in
        parts: list[nn.Module] = [*conv_norm(width_in, inner, act=stage.act)] if stage.wider else []
        parts += conv_norm(inner, inner, stage.size, stride, groups=inner, act=stage.act)
        if stage.squeeze is not None:
            parts.append(stage.squeeze(inner, width_in))
        parts += conv_norm(inner, stage.width, act=None)
        self.path, self.adds = nn.Sequential(*parts), stride == 1 and width_in == stage.width

    def forward(self, x: Tensor) -> Tensor:
        """The stage's width, and the size divided by the stride."""
        seen: Tensor = self.path(x)
        return seen + x if self.adds else seen


def body(width_in: int, stages: tuple[Stage, ...]) -> nn.Sequential:
    """The blocks of all stages, one after the other."""
    parts: list[nn.Module] = []
    for stage in stages:
        for k in range(stage.n):
            parts.append(Inverted(width_in, stage, stage.stride if k == 0 else 1))
            width_in = stage.width
    return nn.Sequential(*parts)


# MobileNet V2: Sandler et al. 2018, arXiv 1801.04381, table 2 (times wider, width, blocks, stride).
V2 = ((0, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet_v2() -> nn.Module:
    """MobileNet V2 of width 1."""
    stages = tuple(Stage(n, 3, stride, wider, width, nn.ReLU6) for wider, width, n, stride in V2)
    return nn.Sequential(
        conv_norm(3, 32, 3, 2, act=nn.ReLU6), body(32, stages), conv_norm(320, 1280, act=nn.ReLU6), Head(1280)
    )


def _hard_squeeze(inner: int, _: int) -> nn.Module:
    return SqueezeExcite(inner, rounded(inner * 0.25), nn.ReLU, nn.Hardsigmoid)


R, H, SE = nn.ReLU, nn.Hardswish, _hard_squeeze
# MobileNet V3: Howard et al. 2019, arXiv 1905.02244, tables 1 and 2.
V3_LARGE = (
    Stage(1, 3, 1, 0, 16, R),
    Stage(1, 3, 2, 4, 24, R),
    Stage(1, 3, 1, 3, 24, R),
    Stage(3, 5, 2, 3, 40, R, SE),
    Stage(1, 3, 2, 6, 80, H),
    Stage(1, 3, 1, 2.5, 80, H),
    Stage(2, 3, 1, 2.3, 80, H),
    Stage(2, 3, 1, 6, 112, H, SE),
    Stage(3, 5, 2, 6, 160, H, SE),
)
V3_SMALL = (
    Stage(1, 3, 2, 0, 16, R, SE),
    Stage(1, 3, 2, 4.5, 24, R),
    Stage(1, 3, 1, 3.67, 24, R),
    Stage(1, 5, 2, 4, 40, H, SE),
    Stage(2, 5, 1, 6, 40, H, SE),
    Stage(2, 5, 1, 3, 48, H, SE),
    Stage(3, 5, 2, 6, 96, H, SE),
)


class LateHead(nn.Module):
    """A head that pools first and widens then, with a convolution of one pixel."""

    def __init__(self, width: int, wide: int, act: type[nn.Module], classes: int = 1000) -> None:
        super().__init__()
        self.widen, self.act = nn.Conv2d(width, wide, 1), act(inplace=True)
        self.out = nn.Linear(wide, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        scores: Tensor = self.out(self.act(self.widen(x.mean((2, 3), keepdim=True))).flatten(1))
        return scores


def mobilenet_v3(stages: tuple[Stage, ...], last: int, head: int) -> nn.Module:
    """MobileNet V3 of width 1, its last two widths given."""
    return nn.Sequential(
        conv_norm(3, 16, 3, 2, act=H),
        body(16, stages),
        conv_norm(stages[-1].width, last, act=H),
        LateHead(last, head, H),
    )


# EfficientNet: Tan and Le 2019, arXiv 1905.11946, table 1 (filter, stride, times wider, width, blocks); b1 to b4 scale
# width and depth as in their repository's efficientnet_builder.py.
B0 = (
    (3, 1, 0, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
SCALES = {"b0": (1.0, 1.0), "b1": (1.0, 1.1), "b2": (1.1, 1.2), "b3": (1.2, 1.4), "b4": (1.4, 1.8)}
SIDES = {"b0": 224, "b1": 240, "b2": 260, "b3": 300, "b4": 380}


def _timm_squeeze(inner: int, width_in: int) -> nn.Module:
    return SqueezeExcite(inner, round(width_in * 0.25), nn.SiLU)


def _nvidia_squeeze(inner: int, width_in: int) -> nn.Module:
    return Weighed(inner, max(1, int(width_in * 0.25)))


def _nvidia_wide_squeeze(inner: int, _: int) -> nn.Module:
    return Weighed(inner, max(1, int(inner * 0.25)))


def efficientnet(size: str, squeeze: Squeeze, dropout: float = 0.0) -> nn.Module:
    """EfficientNet of size "b0" to "b4"."""
    wider, deeper = SCALES[size]
    stages = tuple(
        Stage(math.ceil(n * deeper), filter_size, stride, more, rounded(width * wider), nn.SiLU, squeeze)
        for filter_size, stride, more, width, n in B0
    )
    first, last = rounded(32 * wider), rounded(1280 * wider)
    return nn.Sequential(
        conv_norm(3, first, 3, 2, act=nn.SiLU),
        body(first, stages),
        conv_norm(stages[-1].width, last, act=nn.SiLU),
        Head(last, dropout=dropout),
    )


def efficientnet_b0() -> nn.Module:
    """EfficientNet-B0 as timm writes it."""
    return efficientnet("b0", _timm_squeeze)


def _efficientnet(size: str) -> Workload:
    source = "Tan and Le 2019, arXiv 1905.11946; timm/models/efficientnet.py"
    return workload(
        f"efficientnet_{size}",
        f"EfficientNet-{size} of timm",
        source,
        lambda setting: efficientnet(size, _timm_squeeze),
        options={"side": SIDES[size]},
    )


def _nvidias(size: str, wide: bool, batch: int, dropout: float) -> Workload:
    squeeze = _nvidia_wide_squeeze if wide else _nvidia_squeeze
    source = "NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets, image_classification/models/efficientnet.py"
    settings: dict[str, Option] = {"side": SIDES[size], "recipe": "dle", "torch": "1.9"}  # container 21.03
    return workload(
        f"efficientnet-{'widese-' if wide else ''}{size}",
        f"EfficientNet-{size} of NVIDIA",
        source,
        lambda setting: efficientnet(size, squeeze, dropout),
        batch,
        {**settings, "update_batch": 4096, "optimizer": "rmsprop"},  # configs.yml there
    )


HOWARD = "Howard et al. 2019, arXiv 1905.02244; timm/models/mobilenetv3.py"
MOBILENETS = (
    workload(
        "mobilenetv2_100", "MobileNet V2", "Sandler et al. 2018, arXiv 1801.04381", lambda setting: mobilenet_v2()
    ),
    workload("mobilenetv3_large_100", "MobileNet V3 large", HOWARD, lambda setting: mobilenet_v3(V3_LARGE, 960, 1280)),
    workload("mobilenetv3_small_100", "MobileNet V3 small", HOWARD, lambda setting: mobilenet_v3(V3_SMALL, 576, 1024)),
)
EFFICIENTNETS = (
    *(_efficientnet(size) for size in SCALES),
    *(
        _nvidias(size, wide, batch, dropout)
        for wide in (False, True)
        for size, batch, dropout in (("b0", 256, 0.2), ("b4", 64, 0.4))
    ),
)
