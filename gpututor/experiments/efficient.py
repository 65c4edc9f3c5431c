"""Lesson 13: networks that need little arithmetic, how they lie in memory, and ways to make a trained one smaller.

How long a step takes is asked of networks that are followed by their shapes. What is lost by making one smaller is
asked of a small one, which really learns to read handwritten digits and is really made smaller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.efficient_ways import (
    ASKED_BATCH,
    BATCHES,
    Bytes,
    Net,
    Order,
    Slim,
    ask_key,
    bytes_key,
    layer_key,
    learned_key,
    slim_key,
    train_key,
)
from gpututor.experiments.formats import Training
from gpututor.experiments.slimmed import N_AGAIN, N_LEARNED, Learner, Way
from gpututor.experiments.sweeps import Step, Variant
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import nn

SIDE, CLASSES = 224, 1000
RATE, MOMENTUM = 0.01, 0.9
ZERO_SHARE, HALF = 0.9, 0.5
N_ANSWERED = 4
LAYER_BATCH, LAYER_WIDTH, LAYER_SIDE = 2, 32, 512  # as in pytorch issue 18631
RUN_ON = "H100-SXM"  # its memory holds all of it; the page prices what was done on any other card
WHAT = "lesson 13, efficient on paper"


def build(net: Net, *, inner: float = 1) -> nn.Module:
    """The network; `inner` is how many times wider than usual ResNet-50's blocks are inside."""
    from gpututor.workloads.vision.inverted import efficientnet_b0, mobilenet_v2
    from gpututor.workloads.vision.resnets import ResNet

    match net:
        case Net.MOBILENET:
            return mobilenet_v2()
        case Net.EFFICIENTNET:
            return efficientnet_b0()
        case Net.RESNET18:
            return ResNet((2, 2, 2, 2), basic=True)
    return ResNet((3, 4, 6, 3), inner)


def _laid(net: nn.Module, batch: int, order: Order, device: torch.device) -> tuple[nn.Module, torch.Tensor]:
    import torch

    form = torch.channels_last if order.last else torch.contiguous_format
    photos = torch.randn(batch, 3, SIDE, SIDE, device=device).to(memory_format=form)
    laid: nn.Module = net.to(memory_format=form)  # type: ignore[call-overload]  # torch's own stub lacks it
    return laid, photos


def training(net: Net, batch: int, order: Order, device: torch.device) -> Step:
    """A training step on so many photos, with SGD."""
    import torch
    from torch.nn import functional

    torch.manual_seed(0)
    with device:  # so that nobody draws weights which only shapes are asked of
        built = build(net)
    model, photos = _laid(built, batch, order, device)
    kinds = torch.randint(0, CLASSES, (batch,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    train = Training(order.format, model, optimizer, device)
    return lambda _k: train(lambda: functional.cross_entropy(model(photos), kinds))


def asking(model: nn.Module, given: torch.Tensor, *, compiled: bool = False) -> Step:
    """A forward pass without gradients; gives nothing."""
    import torch

    import gpututor

    model.eval()
    called = gpututor.compile(model) if compiled else model

    def step(_k: int) -> None:
        with torch.no_grad():
            called(given)

    return step


def one_photo(net: Net, device: torch.device) -> Step:
    """A forward pass of one photo in fp32."""
    with device:
        built = build(net)
    return asking(*_laid(built, 1, Order.FP32, device))


def slimmed(slim: Slim, batch: int, device: torch.device) -> Step:
    """A forward pass of ResNet-50 in fp16, channels last, after something was done to its weights."""
    import torch
    from torch import nn
    from torch.nn.utils import prune

    with device:
        built = build(Net.RESNET50, inner=HALF if slim is Slim.HALVED else 1)
    if slim in (Slim.ZEROS, Slim.MASKED):
        for layer in built.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                prune.random_unstructured(layer, "weight", ZERO_SHARE)  # which ones is all the same to the clock
                if slim is Slim.ZEROS:
                    prune.remove(layer, "weight")
    model, photos = _laid(built.to(torch.float16), batch, Order.FP16_LAST, device)
    return asking(model, photos.to(torch.float16))


def transformer(way: Bytes, batch: int, device: torch.device) -> Step:
    """A forward pass of a vision transformer of the usual size in fp16, its linear layers in fp16 or int8."""
    import torch

    from gpututor.jobs.slimming import linears_in_8_bits
    from gpututor.workloads.vision.vits import SIZES, Vit

    with device:
        built = Vit(*SIZES["base"], SIDE, fused=True)
    model = built.to(torch.float16)
    if way in (Bytes.INT8, Bytes.INT8_COMPILED):
        linears_in_8_bits(model.layers)
    photos = torch.randn(batch, 3, SIDE, SIDE, device=device).to(torch.float16)
    return asking(model, photos, compiled=way in (Bytes.COMPILED, Bytes.INT8_COMPILED))


def layer(depthwise: bool, device: torch.device) -> Step:
    """One 3x3 convolution in fp32, forward, with one channel a group or all in one."""
    import torch
    from torch import nn

    with device:
        conv = nn.Conv2d(LAYER_WIDTH, LAYER_WIDTH, 3, padding=1, groups=LAYER_WIDTH if depthwise else 1)
    return asking(conv, torch.randn(LAYER_BATCH, LAYER_WIDTH, LAYER_SIDE, LAYER_SIDE, device=device))


def _timed(key: str, label: str, make: Any, n: int, *, measured: bool = False) -> Variant:
    n_warmup = 2 if n == 1 else 1  # a host without a lead feels the second step's allocations
    return Variant(key, label, make, n, n, 10 if measured else 2, n_warmup, numerics=False, n_kept=2)


def trained(pairs: Mapping[Net, Sequence[tuple[int, Order]]], **options: Any) -> list[Variant]:
    """Training steps: by network, batches and orders."""
    return [
        _timed(
            train_key(net, n, order),
            f"{net.value}, {n} photos, {order.value}",
            partial(training, net, n, order),
            n,
            **options,
        )
        for net, asked in pairs.items()
        for n, order in asked
    ]


def networks(batches: Sequence[int]) -> list[Variant]:
    """Every network at every batch, at the asked one in every order, and one photo in fp32."""
    asked = [(n, Order.FP16_LAST) for n in batches]
    asked += [(ASKED_BATCH, order) for order in Order if order is not Order.FP16_LAST] + [(1, Order.FP32)]
    found = trained(dict.fromkeys(Net, asked))
    return found + [_timed(ask_key(net), f"{net.value}, asked", partial(one_photo, net), 1) for net in Net]


def smaller() -> list[Variant]:
    """ResNet-50 after something was done to its weights, a transformer's linear layers, and one convolution."""
    found = [
        _timed(slim_key(slim, n), f"ResNet-50, {slim.value}, {n} photos", partial(slimmed, slim, n), n)
        for n in (ASKED_BATCH, 1)
        for slim in Slim
    ]
    found += [
        _timed(bytes_key(way), f"ViT-B/16, {way.value}", partial(transformer, way, ASKED_BATCH), ASKED_BATCH)
        for way in Bytes
    ]
    found += [
        _timed(layer_key(each), f"one convolution, {'depthwise' if each else 'whole'}", partial(layer, each), 1)
        for each in (False, True)
    ]
    return found


def learned(n_steps: int = N_LEARNED, n_again: int = N_AGAIN) -> list[Variant]:
    """The small readers: two that learn, then the first one made smaller in each way, learning on where it can."""
    from gpututor.experiments.slimmed import BATCH

    start: dict[str, Any] = {}  # what the first one has learned; the others begin with it
    found = []
    for way in Way:
        n = n_steps if way.learns else n_again
        make = partial(Learner, way, start)
        found.append(Variant(learned_key(way), way.value, make, None, BATCH, n, 0, n_kept=min(2, n)))
    return found


def run(
    progress: Progress,
    *,
    batches: Sequence[int] = BATCHES,
    n_learned: int = N_LEARNED,
    n_again: int = N_AGAIN,
    machine: str = RUN_ON,
) -> dict[str, Any]:
    """Train all of them on simulated cards, as `sweeps.simulate`."""
    asked = networks(batches) + smaller() + learned(n_learned, n_again)
    return sweeps.simulate(progress, asked, what=WHAT, machine=machine)


def answers() -> list[Variant]:
    """Forward passes on a processor, in fp32 and, where torch has it there, in int8 by torch.ao."""
    from gpututor.jobs.torch_ao import engine

    def make(net: Net, int8: bool, device: torch.device) -> Step:
        import torch

        from gpututor.jobs.torch_ao import on_processor

        model, photos = build(net).eval(), torch.randn(N_ANSWERED, 3, SIDE, SIDE, device=device)
        return asking((on_processor(model, photos) or model) if int8 else model, photos)

    return [
        _timed(
            f"answer-{net.key}-{'int8' if int8 else 'fp32'}",
            f"{net.value} answers, {N_ANSWERED} photos, {'int8 by torch.ao' if int8 else 'fp32'}",
            partial(make, net, int8),
            N_ANSWERED,
        )
        for net in (Net.RESNET50, Net.MOBILENET)
        for int8 in ((False, True) if engine() else (False,))
    ]


def measure(progress: Progress, *, device: str = "cuda") -> dict[str, Any]:
    """The networks on the reader's GPU at two batches; on a processor with two photos in fp32, and answers in int8."""
    if device == "cpu":
        asked = trained({net: [(2, Order.FP32)] for net in Net}, measured=False) + answers()
    else:
        both = [(ASKED_BATCH, Order.FP16_LAST), (ASKED_BATCH, Order.FP32), (1, Order.FP16_LAST)]
        asked = trained(dict.fromkeys(Net, both), measured=True)
    return sweeps.measure(progress, asked, what=WHAT, device=device)
