"""SSD300: boxes and classes from six feature maps of a ResNet-50.

Source of every fact here: NVIDIA/DeepLearningExamples PyTorch/Detection/SSD at 729963d, files named below.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from gpututor.workloads.apex_parallel import ApexParallel
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import autocast, pictures, prepared
from gpututor.workloads.vision.resnets import Bottleneck
from gpututor.workloads.waiting import wait_for

F = nn.functional
N_BOXES, N_CLASSES = 8732, 81  # of 38, 19, 10, 5, 3 and 1 positions a side, with 4 or 6 boxes each; COCO's classes
MAPS = ((1024, 4), (512, 6), (512, 6), (256, 6), (256, 4), (256, 4))  # channels and boxes a position
BETWEEN = ((256, 2, 1), (256, 2, 1), (128, 2, 1), (128, 1, 0), (128, 1, 0))  # inner channels, stride and padding


class Ssd300(nn.Module):
    """The network (ssd/model.py): ResNet-50 up to its third stage, there without a stride, and five blocks more."""

    def __init__(self) -> None:
        super().__init__()
        stages: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True)]
        stages.append(nn.MaxPool2d(3, 2, 1))
        width = 64
        for inner, n_blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 1)):
            for k in range(n_blocks):
                stages.append(Bottleneck(width, inner, 4 * inner, stride if k == 0 else 1))
                width = 4 * inner
        self.body = nn.Sequential(*stages)
        self.between = nn.ModuleList(
            nn.Sequential(
                *(nn.Conv2d(n_in, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(True)),
                *(nn.Conv2d(inner, n_out, 3, stride, padding, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(True)),
            )
            for (n_in, _), (n_out, _), (inner, stride, padding) in zip(MAPS, MAPS[1:], BETWEEN, strict=False)
        )
        self.boxes = nn.ModuleList(nn.Conv2d(n_in, n * 4, 3, padding=1) for n_in, n in MAPS)
        self.classes = nn.ModuleList(nn.Conv2d(n_in, n * N_CLASSES, 3, padding=1) for n_in, n in MAPS)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Places (picture, 4, box) and class scores (picture, class, box)."""
        maps = [self.body(x)]
        for block in self.between:
            maps.append(block(maps[-1]))
        n = x.shape[0]
        places, scores = [], []
        for seen, box, kind in zip(maps, self.boxes, self.classes, strict=True):
            places.append(box(seen).reshape(n, 4, -1))
            scores.append(kind(seen).reshape(n, N_CLASSES, -1))
        return torch.cat(places, 2).contiguous(), torch.cat(scores, 2).contiguous()


class BoxLoss(nn.Module):
    """Smooth L1 of places, cross-entropy of classes with the three hardest negatives a positive (ssd/model.py)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("defaults", torch.rand(1, 4, N_BOXES) + 0.1)

    def forward(self, places: Tensor, scores: Tensor, boxes: Tensor, labels: Tensor) -> Tensor:
        """The mean over pictures."""
        defaults = self.get_buffer("defaults")
        real = labels > 0
        n_real = real.sum(dim=1)
        centre = 10.0 * (boxes[:, :2] - defaults[:, :2]) / defaults[:, 2:]
        size = 5.0 * (boxes[:, 2:] / defaults[:, 2:]).log()
        wanted = torch.cat((centre, size), dim=1).contiguous()
        off = F.smooth_l1_loss(places, wanted, reduction="none").sum(dim=1)
        off = (real.float() * off).sum(dim=1)
        wrong = F.cross_entropy(scores, labels, reduction="none")
        hard = wrong.clone().masked_fill_(real, 0)
        _, order = hard.sort(dim=1, descending=True)
        _, rank = order.sort(dim=1)
        taken = rank < torch.clamp(3 * n_real, max=N_BOXES).unsqueeze(-1)
        wrong = (wrong * (real + taken).float()).sum(dim=1)
        counted = (n_real > 0).float()
        return ((off + wrong) * counted / n_real.float().clamp(min=1e-6)).mean(dim=0)


def _without_decay(net: nn.Module) -> list[dict[str, object]]:
    """Two groups: norms and biases without weight decay, the others with it (ssd/train.py)."""
    flat = [p for p in net.parameters() if p.dim() == 1]
    return [{"params": flat, "weight_decay": 0.0}, {"params": [p for p in net.parameters() if p.dim() > 1]}]


class Trainer:
    """The loop of its training benchmark: the loader leaves a batch on the card, the host waits each step.

    Only the pictures are channels-last, so every convolution turns its weights first. SGD is torch's loop over
    parameters, as its torch had it. What DALI does on the card (decoding, cropping, boxes) is not here.
    """

    def __init__(self, setting: Setting, device: str) -> None:
        n = setting.batch
        assert n is not None
        self.setting, self.device = setting, device
        plain = replace(setting, layout="nchw")
        self.net, self.loss = prepared(Ssd300(), plain, ApexParallel), BoxLoss()
        self.raw = pictures(plain, device, 3, 300, 300)
        self.boxes = torch.rand(n * N_BOXES, 4)
        self.classes = torch.randint(0, N_CLASSES, (n * N_BOXES,), dtype=torch.int32)
        self.offsets, self.mean, self.std = torch.arange(n + 1), torch.rand(1, 3, 1, 1), torch.rand(1, 3, 1, 1) + 1
        groups = _without_decay(self.net)
        self.sgd = torch.optim.SGD(groups, lr=2.6e-3, momentum=0.9, weight_decay=5e-4, foreach=False)
        self.scaler = torch.amp.GradScaler(device, enabled=setting.precision == "amp")

    def forward(self) -> tuple[Tensor, Tensor]:
        """Places and scores of the batch, normalized first."""
        seen = self.raw.sub_(self.mean).div_(self.std)
        if self.setting.layout == "nhwc":
            seen = seen.to(memory_format=torch.channels_last)
        places, scores = self.net(seen)
        return places, scores

    def train(self, k: int) -> Tensor:
        """One training step, with "gradients" one without its update."""
        n = self.raw.shape[0]
        labels = self.classes.long().view(n, N_BOXES)
        self.offsets[-1].item()
        with autocast(self.setting, self.device):
            places, scores = self.forward()
            wanted = self.boxes.view(n, N_BOXES, 4).transpose(1, 2).contiguous()
            loss: Tensor = self.loss(places.float(), scores.float(), wanted, labels)
        torch.autograd.backward(self.scaler.scale(loss))
        if self.setting.kind == "train":
            self.scaler.step(self.sgd)
            self.scaler.update()
        self.sgd.zero_grad()
        wait_for(self.device)
        return loss

    def infer(self, k: int) -> None:
        """One batch without gradients."""
        with torch.no_grad(), autocast(self.setting, self.device):
            self.forward()
        wait_for(self.device)


def _ssd300(setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    with torch.device(device):
        trainer = Trainer(setting, device)
    return Job(trainer.infer if setting.kind == "infer" else trainer.train, setting.batch)


SSD300 = Workload(
    "ssd300",
    "SSD300 with ResNet-50, COCO, the loop of NVIDIA's training benchmark",
    "NVIDIA/DeepLearningExamples PyTorch/Detection/SSD at 729963d",
    "img",
    32,
    _ssd300,
)
