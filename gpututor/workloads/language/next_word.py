"""Networks that guess the next word, at work: as Hugging Face ran them in 2023, and GPT-2 with today's attention."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gpututor.workloads.language import gpt2, opt
from gpututor.workloads.language.gathering import gathering
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import prepared, steps

F = nn.functional


def _gathering(make: Callable[[], nn.Module], setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    with torch.device(device):
        net = prepared(make(), setting)
        ids = torch.ones(setting.batch, int(setting.options["length"]), dtype=torch.int64)
    return Job(gathering(net, lambda: net(ids), ids, setting, device), setting.batch)


def _clearing(make: Callable[[], nn.Module], words: int, setting: Setting, device: str) -> Job:
    """A usual training step: AdamW in one kernel list, gradients clipped to a norm of 1."""
    assert setting.batch is not None
    with torch.device(device):
        net = prepared(make(), setting)
        ids, targets = torch.randint(0, words, (2, setting.batch, int(setting.options["length"]))).unbind(0)

    def loss() -> Tensor:
        return F.cross_entropy(net(ids).flatten(0, 1), targets.flatten())

    if setting.kind == "infer":
        return Job(steps(net, lambda: net(ids), setting, device, None), setting.batch)
    adamw = torch.optim.AdamW(net.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    return Job(steps(net, loss, setting, device, adamw, clip_norm=1.0), setting.batch)


EAGER = {
    "gpt2-large-hf2023": (lambda: gpt2.EagerGpt2(gpt2.SIZES["gpt2-large"]), 1024, "models/gpt2/modeling_gpt2.py"),
    "gpt2-medium-hf2023": (lambda: gpt2.EagerGpt2(gpt2.SIZES["gpt2-medium"]), 1024, "models/gpt2/modeling_gpt2.py"),
    "gpt2-xl-hf2023": (lambda: gpt2.EagerGpt2(gpt2.SIZES["gpt2-xl"]), 1024, "models/gpt2/modeling_gpt2.py"),
    "gpt3-xl-hf2023": (lambda: gpt2.EagerGpt2(gpt2.SIZES["gpt3-xl"]), 2048, "models/gpt2/modeling_gpt2.py"),
    "gpt3-2.7b-hf2023": (lambda: gpt2.EagerGpt2(gpt2.SIZES["gpt3-2.7b"]), 2048, "models/gpt2/modeling_gpt2.py"),
    "opt-1.3b-hf2023": (lambda: opt.Opt(opt.SIZES["opt-1.3b"]), 2048, "models/opt/modeling_opt.py"),
}


def _eager(name: str) -> Workload:
    make, length, file = EAGER[name]
    return Workload(
        name,
        f"{name.removesuffix('-hf2023')} as Hugging Face's transformers ran it in 2023, its attention in separate ops",
        f"huggingface/transformers 4.38, {file}; sitar-lab/NeuSight neusight/Tracing/trace.py",
        "seq",
        4,
        lambda setting, device: _gathering(make, setting, device),
        {"length": length},
    )


def _today(name: str) -> Workload:
    size = gpt2.SIZES[name]

    def make() -> nn.Module:
        return gpt2.Gpt2(size.layers, size.width, size.heads, size.words, size.length)

    return Workload(
        name,
        f"{name} with attention as one kernel, trained with AdamW and clipped gradients",
        "Radford et al. 2019, table 2; recipe: karpathy/nanoGPT train.py",
        "seq",
        8,
        lambda setting, device: _clearing(make, size.words, setting, device),
        {"length": size.length},
    )


NEXT_WORD = (
    *(_today(name) for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")),
    *(_eager(name) for name in EAGER),
)
