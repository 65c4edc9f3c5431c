"""ResNets for ImageNet's pictures."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import pictures, prepared, steps

F = nn.functional


class Bottleneck(nn.Module):
    """The block of 50 layers and more: 1x1, 3x3 and 1x1 convolutions around a sum; the stride is in the 3x3 one."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        sizes = ((width_in, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1))
        parts: list[nn.Module] = []
        for n_in, n_out, size, step in sizes:
            parts += [nn.Conv2d(n_in, n_out, size, step, size // 2, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(True)]
        self.path = nn.Sequential(*parts[:-1])
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or width_in != 4 * width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width_in, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Four times the width, and the size divided by the stride."""
        return F.relu(self.path(x) + self.shortcut(x), inplace=True)


class ResNet50(nn.Module):
    """ResNet-50 for 224x224 pictures by default; `width` and `blocks` make a smaller one.

    Source: He et al. 2015, "Deep Residual Learning for Image Recognition", table 1; 25.6 million parameters.
    """

    def __init__(self, classes: int = 1000, width: int = 64, blocks: tuple[int, ...] = (3, 4, 6, 3)) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)
        )
        parts: list[nn.Module] = []
        width_in = width
        for stage, n_blocks in enumerate(blocks):
            for k in range(n_blocks):
                parts.append(Bottleneck(width_in, width << stage, 2 if stage and not k else 1))
                width_in = 4 * width << stage
        self.body, self.out = nn.Sequential(*parts), nn.Linear(width_in, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        x = F.adaptive_avg_pool2d(self.body(self.stem(pictures)), 1)
        scores: Tensor = self.out(torch.flatten(x, 1))
        return scores


def _resnet50(setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    side = int(setting.options["side"])
    with torch.device(device):
        net = prepared(ResNet50(), setting)
        seen, targets = pictures(setting, device, 3, side, side), torch.randint(0, 1000, (setting.batch,))
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    if setting.kind == "infer":
        return Job(steps(net, lambda: net(seen), setting, device, None), setting.batch)
    return Job(
        steps(net, lambda: F.cross_entropy(net(seen), targets), setting, device, sgd), setting.batch
    )


RESNET50 = Workload(
    "resnet50",
    "ResNet-50, ImageNet pictures, SGD with momentum",
    "He et al. 2015, arXiv 1512.03385, table 1",
    "img",
    64,
    _resnet50,
    {"side": 224},
)
