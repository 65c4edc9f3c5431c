"""U-Net, as in the paper that named it: a picture in, a class for each pixel out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import pictures, prepared, steps

F = nn.functional
WIDTHS = (64, 128, 256, 512, 1024)
SOURCE = "Ronneberger et al. 2015, arXiv 1505.04597, figure 1 and section 3"


def twice(width_in: int, width: int) -> nn.Sequential:
    """Two 3x3 convolutions without padding, each of which takes two pixels off the side."""
    return nn.Sequential(nn.Conv2d(width_in, width, 3), nn.ReLU(True), nn.Conv2d(width, width, 3), nn.ReLU(True))


class Unet(nn.Module):
    """Four halvings and four doublings of the size, with what was seen on the way down joined on the way up."""

    def __init__(self, channels: int = 1, classes: int = 2) -> None:
        super().__init__()
        self.down = nn.ModuleList(twice(a, b) for a, b in zip((channels, *WIDTHS[:-1]), WIDTHS, strict=True))
        wide = WIDTHS[:0:-1]
        self.larger = nn.ModuleList(nn.ConvTranspose2d(width, width // 2, 2, 2) for width in wide)
        self.up = nn.ModuleList(twice(width, width // 2) for width in wide)
        self.out = nn.Conv2d(WIDTHS[0], classes, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, classes, height, width); 572 pixels become 388."""
        seen: list[Tensor] = []
        x = pictures
        for k, layer in enumerate(self.down):
            x = layer(F.max_pool2d(x, 2) if k else x)
            seen.append(x)
        for larger, layer, beside in zip(self.larger, self.up, seen[-2::-1], strict=True):
            x = larger(x)
            edge, side = (beside.shape[-1] - x.shape[-1]) // 2, x.shape[-1]
            x = layer(torch.cat([beside[..., edge : edge + side, edge : edge + side], x], 1))
        scores: Tensor = self.out(x)
        return scores


def _unet(setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    side = int(setting.options["side"])
    with torch.device(device):
        net = prepared(Unet(), setting)
        seen = pictures(setting, device, 1, side, side)
        targets = torch.randint(0, 2, (setting.batch, side - 184, side - 184))
        sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.99)
    if setting.kind == "infer":
        return Job(steps(net, lambda: net(seen), setting, device, None), setting.batch)
    return Job(steps(net, lambda: F.cross_entropy(net(seen), targets), setting, device, sgd), setting.batch)


UNET = Workload("unet", "U-Net, pictures of 572x572", SOURCE, "img", 1, _unet, {"side": 572})
