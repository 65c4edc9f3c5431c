"""One layer or one operator, as kernel benchmarks time them: forward, or forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Job, Option, Setting, Workload
from gpututor.workloads.training import autocast, data_dtype

F = nn.functional
Made = tuple[Callable[..., Tensor], tuple[Tensor, ...]]  # what to call and with which tensors


def _job(made: Made, setting: Setting, device: str) -> Job:
    call, tensors = made
    for t in tensors:
        t.requires_grad_(setting.kind == "gradients")

    def infer(k: int) -> None:
        with torch.no_grad(), autocast(setting, device):
            call(*tensors)

    def gradients(k: int) -> None:
        with autocast(setting, device):
            out = call(*tensors)
        torch.autograd.grad(out, tensors, torch.ones_like(out))

    return Job(gradients if setting.kind == "gradients" else infer, 1)


def _workload(name: str, what: str, make: Callable[[Setting], Made], options: Mapping[str, Option]) -> Workload:
    def built(setting: Setting, device: str) -> Job:
        with torch.device(device):
            return _job(make(setting), setting, device)

    return Workload(name, what, "torch.nn", "call", 64, built, options, ("infer", "gradients"))


def _tensor(setting: Setting, *sizes: int) -> Tensor:
    made = torch.randn(*sizes, dtype=data_dtype(setting))
    return made.contiguous(memory_format=torch.channels_last) if setting.layout == "nhwc" and len(sizes) == 4 else made


def _sizes(setting: Setting, *names: str) -> list[int]:
    return [int(setting.options[name]) for name in names]


def _linear(setting: Setting) -> Made:
    assert setting.batch is not None
    n_in, n_out = _sizes(setting, "inputs", "outputs")
    bias = (_tensor(setting, n_out),) if setting.options["bias"] else ()
    return F.linear, (_tensor(setting, setting.batch, n_in), _tensor(setting, n_out, n_in), *bias)


def _conv2d(setting: Setting) -> Made:
    assert setting.batch is not None
    n_in, n_out, side, size, stride, groups = _sizes(setting, "channels", "filters", "side", "size", "stride", "groups")
    x, weight = _tensor(setting, setting.batch, n_in, side, side), _tensor(setting, n_out, n_in // groups, size, size)
    return lambda x, w: F.conv2d(x, w, None, stride, size // 2, 1, groups), (x, weight)


def _layer_norm(setting: Setting) -> Made:
    assert setting.batch is not None
    (width,) = _sizes(setting, "width")
    tensors = (_tensor(setting, setting.batch, width), _tensor(setting, width), _tensor(setting, width))
    return lambda x, w, b: F.layer_norm(x, (width,), w, b), tensors


def _softmax(setting: Setting) -> Made:
    assert setting.batch is not None
    return lambda x: torch.softmax(x, -1), (_tensor(setting, setting.batch, *_sizes(setting, "width")),)


def _bmm(setting: Setting) -> Made:
    assert setting.batch is not None
    m, n, k = _sizes(setting, "m", "n", "k")
    return torch.bmm, (_tensor(setting, setting.batch, m, k), _tensor(setting, setting.batch, k, n))


LINEAR = _workload(
    "linear_layer", "one Linear layer; batch is rows", _linear, {"inputs": 1024, "outputs": 1024, "bias": True}
)
CONV2D = _workload(
    "conv2d_layer",
    "one Conv2d layer, padded to keep the side where the stride is 1",
    _conv2d,
    {"channels": 64, "filters": 64, "side": 56, "size": 3, "stride": 1, "groups": 1},
)
LAYER_NORM = _workload("layer_norm", "one LayerNorm; batch is rows", _layer_norm, {"width": 1024})
SOFTMAX = _workload("softmax", "one softmax over the last dimension; batch is rows", _softmax, {"width": 1024})
BMM = _workload("bmm", "one batched matrix product", _bmm, {"m": 128, "n": 128, "k": 64})
