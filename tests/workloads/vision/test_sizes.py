"""Parameters and multiply-adds of the picture networks are the published ones."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from gpututor.workloads.setting import Workload
from gpututor.workloads.vision.convnexts import CONVNEXTS
from gpututor.workloads.vision.densenets import DENSENETS
from gpututor.workloads.vision.ghostnets import GHOSTNET
from gpututor.workloads.vision.hrnets import HRNETS
from gpututor.workloads.vision.inceptions import INCEPTION_V3
from gpututor.workloads.vision.inverted import EFFICIENTNETS, MOBILENETS
from gpututor.workloads.vision.recipes import network
from gpututor.workloads.vision.regnets import REGNETS
from gpututor.workloads.vision.repvggs import REPVGGS
from gpututor.workloads.vision.resnets import RESNETS
from gpututor.workloads.vision.small_nets import SMALL_NETS
from gpututor.workloads.vision.unets import Unet
from gpututor.workloads.vision.vggs import ALEXNET, VGGS
from gpututor.workloads.vision.vits import VITS, Attention

ALL: tuple[Workload, ...] = (
    *(*RESNETS, *MOBILENETS, *EFFICIENTNETS, *VGGS, ALEXNET, *DENSENETS, GHOSTNET, *CONVNEXTS, *VITS),
    *(*REGNETS, INCEPTION_V3, *SMALL_NETS, *REPVGGS, *HRNETS),
)
SIDES = {w.name: int(w.options["side"]) for w in ALL}
ELSEWHERE = {  # what timm's table lacks: torchvision's own networks, and NVIDIA's and Lambda's
    *("alexnet", "squeezenet1_0", "squeezenet1_1", "shufflenet_v2_x1_0"),
    *(name for name in SIDES if "-" in name or name in {"resnet50v1.5", "resnet50_lambda"}),
}

# "num_params" in the weights' tables of pytorch/vision, torchvision/models/*.py.
TORCHVISION = {
    "resnet50": 25_557_032,
    "mobilenetv2_100": 3_504_872,
    "mobilenetv3_large_100": 5_483_032,
    "efficientnet_b0": 5_288_548,
    "efficientnet_b1": 7_794_184,
    "efficientnet_b2": 9_109_994,
    "efficientnet_b3": 12_233_232,
    "efficientnet_b4": 19_341_616,
    "densenet121": 7_978_856,
    "convnext_tiny": 28_589_128,
    "vit_base_patch16_224": 86_567_656,
    "alexnet": 61_100_840,
    "squeezenet1_0": 1_248_424,
    "squeezenet1_1": 1_235_496,
    "shufflenet_v2_x1_0": 2_278_604,
}
# "_ops" there: multiply-adds of convolutions and linear layers, in thousands of millions.
TORCHVISION_GMACS = {"densenet121": 2.834, "convnext_tiny": 4.456, "shufflenet_v2_x1_0": 0.145}


@cache
def built(name: str) -> nn.Module:
    with torch.device("meta"):
        return network(name)


def parameters(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def counted(net: nn.Module, side: int) -> tuple[float, float, float]:
    """Multiply-adds of one picture in thousands of millions: layers with weights, attention's products, norms.

    A norm counts as fvcore counts it, which made timm's table: 2 an element for batch norm, 5 for layer norm.
    """
    layers, attention, norms = [], [], []

    def note(module: nn.Module, inputs: tuple[torch.Tensor, ...], out: torch.Tensor) -> None:
        if isinstance(module, nn.Conv2d):
            layers.append(out.numel() * module.weight[0].numel())
        elif isinstance(module, nn.Linear):
            layers.append(out.numel() * module.in_features)
        elif isinstance(module, nn.BatchNorm2d):
            norms.append(2 * out.numel())
        elif isinstance(module, nn.LayerNorm):
            norms.append(5 * out.numel())
        elif isinstance(module, Attention):
            attention.append(2 * out.shape[1] ** 2 * out.shape[2])

    hooks = [module.register_forward_hook(note) for module in net.modules()]
    net.eval()(torch.empty(1, 3, side, side, device="meta"))
    for hook in hooks:
        hook.remove()
    return sum(layers) / 1e9, sum(attention) / 1e9, sum(norms) / 1e9


@cache
def timms(path: Path) -> dict[str, tuple[set[float], dict[int, set[float]]]]:
    """Parameters in millions, and multiply-adds by side, of every network in timm's table."""
    found: dict[str, tuple[set[float], dict[int, set[float]]]] = {}
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            sizes, gmacs = found.setdefault(row["model"], (set(), {}))
            sizes.add(float(row["param_m"]))
            if row["gmacs"]:
                gmacs.setdefault(int(row["img_size"]), set()).add(float(row["gmacs"]))
    return found


@pytest.mark.parametrize(("name", "published"), TORCHVISION.items())
def test_a_network_has_torchvisions_number_of_parameters(name, published):
    assert parameters(built(name)) == published


@pytest.mark.parametrize(("name", "published"), TORCHVISION_GMACS.items())
def test_a_network_has_torchvisions_number_of_multiply_adds(name, published):
    assert counted(built(name), SIDES[name])[0] == pytest.approx(published, abs=0.0006)


@pytest.mark.parametrize("name", sorted(set(SIDES) - ELSEWHERE))
def test_a_network_has_timms_number_of_parameters(name, shared):
    sizes, _ = timms(shared / "measured/timm_benchmarks.csv.gz")[name]

    assert round(parameters(built(name)) / 1e6, 2) in sizes


@pytest.mark.parametrize("name", sorted(set(SIDES) - ELSEWHERE))
def test_a_network_has_timms_number_of_multiply_adds(name, shared):
    _, by_side = timms(shared / "measured/timm_benchmarks.csv.gz")[name]
    side = min(by_side) if not name.startswith("vit") else SIDES[name]
    layers, attention, norms = counted(built(name), side)

    # Where attention was one fused op, fvcore didn't see its products.
    assert any(abs(layers + norms + products - g) <= 0.011 for g in by_side[side] for products in {0.0, attention})


def test_nvidias_squeeze_adds_two_linear_layers_of_16_channels_to_each_block():
    blocks = {256: 3, 512: 4, 1024: 23, 2048: 3}
    added = sum(n * (16 * width + 16 + 16 * width + width) for width, n in blocks.items())

    assert parameters(built("se-resnext101-32x4d")) == parameters(built("resnext101-32x4d")) + added


@pytest.mark.parametrize("size", ["b0", "b4"])
def test_nvidias_efficientnets_are_as_large_as_the_papers(size):
    assert parameters(built(f"efficientnet-{size}")) == TORCHVISION[f"efficientnet_{size}"]


def test_the_u_net_of_one_class_has_its_well_known_number_of_parameters():
    with torch.device("meta"):
        assert parameters(Unet(classes=1)) == 31_030_593  # as summaries of it print; the paper has none


def test_the_u_net_makes_388_pixels_of_572():  # figure 1 of the paper
    with torch.device("meta"):
        assert Unet()(torch.empty(1, 1, 572, 572)).shape == (1, 2, 388, 388)


def test_names_are_unique():
    assert len(SIDES) == len(ALL)
