"""How the public benchmarks of picture networks train and run them.

Three programs measured them, and each does something else around the network:

"timm": benchmark.py of huggingface/pytorch-image-models (commit aa4b5850). One batch made on the card is used again
and again; SGD with Nesterov momentum 0.9 and no weight decay; labels are drawn anew each step; autocast covers the
backward pass too and has no gradient scaler; the host waits for the card after each step.

"dle": main.py and launch.py of NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets (commit 555b84b3, where
the figures of container 21.03 stand; settings in configs.yml). In training a loader copies bytes in a stream of its
own, one batch ahead, and makes numbers of them; mixup 0.2 and label smoothing 0.1; gradients are summed up to the batch
of configs.yml before the optimizer runs. Inference computes the loss and two accuracies. What lies between two clock
readings there is a step here, so no figure is read (that comes after), and inference has no loader: the published
throughput is that of `compute_ips` (efficientnet-b0 in amp: 10239 img/s, or 256 in the 25 ms of its latency column).

"lambda": the same program as lambdal/deeplearning-benchmark calls it (the logs under pytorch/results list all
arguments): one synthetic batch, plain cross entropy, SGD with momentum 0.9, no mixup, an update each step.

What torch did by default changed with 2.0: gradients are set to None and SGD works on lists of tensors; before, they
were filled with zeros and each tensor had its own kernels (release notes of PyTorch 2.0). `options["torch"]` says
which version ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from gpututor.errors import SettingNotPossible
from gpututor.workloads.setting import Job, Option, Setting, Step, Workload
from gpututor.workloads.training import autocast, pictures, prepared
from gpututor.workloads.vision.loading import MIXED_SMOOTHING, batches, mixed_loss, one_hot_mixed
from gpututor.workloads.waiting import run_python, wait_for

F = nn.functional
CLASSES = 1000  # ImageNet's
# What a step of NVIDIA's inference takes whatever the network: meters, timers and hand-over of the batch. The latency
# tables at batch 1 and 2 of ResNeXt-101, SE-ResNeXt-101, EfficientNet b4 and widese say 0.34 to 0.50 ms on the DGX-1
# and 0.26 to 0.32 ms on the DGX A100, when fitted together with the time of an operator.
LOOP_S = 0.4e-3
RECIPES = ("timm", "dle", "lambda")
OPTIONS: Mapping[str, Option] = MappingProxyType({"side": 224, "recipe": "timm", "torch": "2.4", "update_batch": 0})
NO_OPTIONS: Mapping[str, Option] = MappingProxyType({})
Builder = Callable[[Setting], nn.Module]
_BUILDERS: dict[str, tuple[Builder, Mapping[str, Option]]] = {}


def workload(
    name: str, what: str, source: str, build: Builder, batch: int = 256, options: Mapping[str, Option] = NO_OPTIONS
) -> Workload:
    """A network as a workload; `options` are its own usual values of `OPTIONS`, or further ones.

    "side" is the picture's in pixels, "recipe" one of `RECIPES`, "torch" the version that ran. "update_batch" is how
    many pictures on all cards make one update in the recipe "dle"; 0 is an update each step.
    """
    full = MappingProxyType({**OPTIONS, **options})
    _BUILDERS[name] = build, full
    what = f"{what}, ImageNet pictures"
    return Workload(name, what, source, "img", batch, lambda setting, device: job(build, setting, device), full)


def network(name: str, **options: Option) -> nn.Module:
    """The network of a workload of this package alone, made where `torch.device` says, with its usual options or these.

    Raises:
        KeyError: no module loaded so far has a workload of this name.
    """
    build, usual = _BUILDERS[name]
    return build(Setting(options={**usual, **options}))


def since(setting: Setting, *version: int) -> bool:
    """Whether the torch that ran is this version or later; (2, 0) is 2.0.

    Raises:
        SettingNotPossible: the option "torch" doesn't begin with a version such as 1.12.
    """
    written = str(setting.options["torch"])
    try:
        return tuple(int(part) for part in written.split(".")[:2]) >= version
    except ValueError:
        raise SettingNotPossible(f"torch is {written!r}; it has to be a version such as 1.12 or 2.4") from None


def job(build: Builder, setting: Setting, device: str) -> Job:
    """The network on `device` with the step of its recipe.

    Raises:
        SettingNotPossible: the recipe isn't one of the known ones.
    """
    assert setting.batch is not None
    recipe = setting.options["recipe"]
    if recipe not in RECIPES:
        raise SettingNotPossible(f"recipe is {recipe!r}; it has to be one of {', '.join(RECIPES)}")
    with torch.device(device):
        net = prepared(build(setting), setting)
    make = _timm if recipe == "timm" else _convnets
    return Job(make(net, setting, device), setting.batch)


def _timm(net: nn.Module, setting: Setting, device: str) -> Step:
    side = int(setting.options["side"])
    seen = pictures(setting, device, 3, side, side)
    if setting.kind == "infer":

        def infer(k: int) -> None:
            with torch.no_grad(), autocast(setting, device):
                net(seen)
            wait_for(device)

        return infer
    lists = since(setting, 2, 0)
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, nesterov=True, foreach=lists)

    def train(k: int) -> Tensor:
        sgd.zero_grad(set_to_none=lists)
        with autocast(setting, device):
            scores = net(seen)
            targets = torch.empty(len(seen), dtype=torch.long, device=device).random_(CLASSES)
            loss = F.cross_entropy(scores, targets)
            _backward(loss)
        if setting.kind == "train":
            sgd.step()
        wait_for(device)
        return loss

    return train


def _backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations


def _convnets(net: nn.Module, setting: Setting, device: str) -> Step:
    loaded = setting.options["recipe"] == "dle"
    if setting.kind == "infer":
        return _validation(net, _same(setting, device), setting, device)
    return _training(net, batches(setting, device) if loaded else _same(setting, device), setting, device, loaded)


def _same(setting: Setting, device: str) -> Iterator[tuple[Tensor, Tensor]]:
    assert setting.batch is not None
    side = int(setting.options["side"])
    seen = pictures(setting, device, 3, side, side)
    targets = torch.randint(0, CLASSES, (setting.batch,), device=device)
    while True:
        yield seen, targets


def _training(
    net: nn.Module, feed: Iterator[tuple[Tensor, Tensor]], setting: Setting, device: str, mixing: bool
) -> Step:
    assert setting.batch is not None
    every = max(1, int(setting.options["update_batch"]) // (setting.batch * setting.n_cards)) if mixing else 1
    lists = since(setting, 2, 0)
    optimizer = _optimizer(net, setting, lists)
    scaler = torch.amp.GradScaler(device, enabled=setting.precision == "amp")

    def train(k: int) -> Tensor:
        seen, targets = next(feed)
        if mixing:
            seen, targets = one_hot_mixed(seen, targets, CLASSES)
        with autocast(setting, device):
            scores = net(seen)
            loss = mixed_loss(scores, targets, MIXED_SMOOTHING) if mixing else F.cross_entropy(scores, targets)
            loss /= every
        shown = _mean_of_cards(loss, setting)
        _backward(scaler.scale(loss))
        if (k + 1) % every == 0 or setting.kind == "gradients":
            if setting.kind == "train":
                scaler.step(optimizer)
                scaler.update()
            optimizer.zero_grad(set_to_none=lists)
        wait_for(device)
        return shown

    return train


def _optimizer(net: nn.Module, setting: Setting, lists: bool) -> torch.optim.Optimizer:
    """The optimizer of configs.yml, norms without weight decay in a group of their own (optimizers.py there)."""
    norms = [p for m in net.modules() if isinstance(m, nn.BatchNorm2d) for p in m.parameters()]
    known = {id(p) for p in norms}
    rest = [p for p in net.parameters() if id(p) not in known]
    groups: list[dict[str, Any]] = [{"params": norms, "weight_decay": 0.0}, {"params": rest}]
    if setting.options.get("optimizer") == "rmsprop":
        return torch.optim.RMSprop(groups, lr=0.08, alpha=0.9, eps=0.01, weight_decay=1e-5, momentum=0.9, foreach=lists)
    return torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=lists)


def _mean_of_cards(loss: Tensor, setting: Setting) -> Tensor:
    """The loss to be shown, which all cards add up, as utils.py of ConvNets does."""
    shown = loss.detach()
    if setting.n_cards > 1:
        shown = shown.clone()
        torch.distributed.all_reduce(shown)
        shown /= setting.n_cards
    return shown


def _validation(net: nn.Module, feed: Iterator[tuple[Tensor, Tensor]], setting: Setting, device: str) -> Step:
    def infer(k: int) -> None:
        seen, targets = next(feed)
        with torch.no_grad(), autocast(setting, device):
            scores = net(seen)
            F.cross_entropy(scores, targets)
            right = scores.topk(5, 1)[1].t().eq(targets.view(1, -1).expand(5, -1))
            for n in (1, 5):
                right[:n].float().sum().mul_(100.0 / len(seen))
        wait_for(device)
        run_python(device, LOOP_S)

    return infer
