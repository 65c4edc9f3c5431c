"""Our kernels of one ResNet-50 training step beside a recorded one (V100, fp32, batch 32).

The passes of batch norm were read off this recording; everything else comes from other sources.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from gpututor.cards import card  # noqa: E402
from gpututor.model.cost import price  # noqa: E402
from gpututor.model.lowering import lower  # noqa: E402
from tests.model.record_ops import Recorded  # noqa: E402

GROUPS = {
    "convolution": ("convolution", "convolution_backward"),
    "batch norm": ("native_batch_norm", "native_batch_norm_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward"),
    "elementwise": ("relu_", "clamp_min_", "threshold_backward", "add_", "add"),
}
CONVOLUTIONS = {"cudnn_convolution": "convolution"}  # the recording names the inner operator
N_STEPS = 5


class Block(torch.nn.Module):
    """One bottleneck of ResNet-50."""

    def __init__(self, width_in, width, stride):
        super().__init__()
        wide = 4 * width
        self.main = torch.nn.Sequential(
            *normed(width_in, width, 1, 1),
            torch.nn.ReLU(inplace=True),
            *normed(width, width, 3, stride),
            torch.nn.ReLU(inplace=True),
            *normed(width, wide, 1, 1),
        )
        same = stride == 1 and width_in == wide
        self.short = torch.nn.Identity() if same else torch.nn.Sequential(*normed(width_in, wide, 1, stride))

    def forward(self, x):
        out = self.main(x)
        out += self.short(x)
        return torch.relu_(out)


def normed(width_in, width, side, stride):
    conv = torch.nn.Conv2d(width_in, width, side, stride, side // 2, bias=False)
    return conv, torch.nn.BatchNorm2d(width)


def resnet50():
    layers = [*normed(3, 64, 7, 2), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(3, 2, 1)]
    width_in = 64
    for width, n_blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(n_blocks):
            layers.append(Block(width_in, width, stride if k == 0 else 1))
            width_in = 4 * width
    head = (torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(2048, 1000))
    return torch.nn.Sequential(*layers, *head)


@pytest.fixture(scope="module")
def predicted_ms():
    with torch.device("meta"):
        net, images, labels = resnet50(), torch.empty(32, 3, 224, 224), torch.empty(32, dtype=torch.long)
        with Recorded() as recorded:
            torch.nn.functional.cross_entropy(net(images), labels).backward()
    times_ms = Counter()
    for call in recorded.calls:
        for kernel in lower(call).kernels:
            times_ms[call.name.split(".")[1]] += price(kernel, card("V100-SXM2-32GB")).duration_ns / 1e6
    return times_ms


@pytest.fixture(scope="module")
def recorded_ms(shared):
    with gzip.open(shared / "traces" / "v100-ns-healthy.json.gz", "rt") as text:
        events = json.load(text)["traceEvents"]
    names = {e["args"].get("External id"): e["name"] for e in events if e.get("cat") == "cpu_op"}
    times_ms = Counter()
    for event in events:
        if event.get("cat") == "kernel":
            name = names.get(event["args"].get("External id"), "aten::other").removeprefix("aten::")
            times_ms[CONVOLUTIONS.get(name, name)] += float(event["dur"]) / 1e3 / N_STEPS
    return times_ms


@pytest.mark.parametrize("group", GROUPS)
def test_a_recorded_resnet50_step_is_met_within_15_percent(group, predicted_ms, recorded_ms):
    ours, theirs = (sum(times[name] for name in GROUPS[group]) for times in (predicted_ms, recorded_ms))

    assert ours == pytest.approx(theirs, rel=0.15)
