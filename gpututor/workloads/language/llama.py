"""Llama 3, as Hugging Face's transformers runs it today."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils import checkpoint as checkpoints

from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import prepared, steps

F = nn.functional


@dataclass(frozen=True, slots=True)
class Size:
    """How large a Llama 3 is; `tied`: the output shares the table of words."""

    layers: int
    width: int
    wide: int
    heads: int
    kv_heads: int
    head: int
    tied: bool
    words: int = 128256


# "The Llama 3 Herd of Models" (2024), table 3, for 8B; meta-llama/Llama-3.2-1B and -3B, config.json
SIZES = {
    "llama-3.2-1b": Size(16, 2048, 8192, 32, 8, 64, tied=True),
    "llama-3.2-3b": Size(28, 3072, 8192, 24, 8, 128, tied=True),
    "llama-3.1-8b": Size(32, 4096, 14336, 32, 8, 128, tied=False),
}


class RmsNorm(nn.Module):
    """Root mean square norm in fp32, scaled in the activations' format: eight ops."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and format as `x`."""
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * wide.to(x.dtype)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: each pair of numbers, half a head apart, turned by an angle that grows with the place."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


class Layer(nn.Module):
    """Attention with fewer heads for keys and values, and a gated feed-forward part."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width, self.head = size.width, size.head
        self.before_attention, self.before_feed = RmsNorm(width), RmsNorm(width)
        self.q = nn.Linear(width, size.heads * size.head, bias=False)
        self.k, self.v = (nn.Linear(width, size.kv_heads * size.head, bias=False) for _ in "kv")
        self.o = nn.Linear(size.heads * size.head, width, bias=False)
        self.gate, self.up = (nn.Linear(width, size.wide, bias=False) for _ in "gu")
        self.down = nn.Linear(size.wide, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, keeps: bool = False) -> Tensor:
        """The same shape as `x` (batch, length, width); with `keeps`, keys and values are copied into a cache."""
        batch, length, _ = x.shape
        h = self.before_attention(x)
        q, k, v = (p(h).view(batch, length, -1, self.head).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        if keeps:  # the cache starts empty and grows by joining, which is a copy
            k, v = (torch.cat([t.new_empty(0), t], dim=-2) for t in (k, v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(seen.transpose(1, 2).reshape(batch, length, -1))
        h = self.before_feed(x)
        fed: Tensor = self.down(F.silu(self.gate(h)) * self.up(h))
        return x + fed


class Llama(nn.Module):
    """The language model (8B: 8,030,261,248 parameters, as published).

    Source: huggingface/transformers 5.24 models/llama/modeling_llama.py, integrations/sdpa_attention.py and
    cache_utils.py.
    """

    def __init__(self, size: Size = SIZES["llama-3.1-8b"], checkpointing: bool = False) -> None:
        super().__init__()
        self.word, self.checkpointing = nn.Embedding(size.words, size.width), checkpointing
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.layers))
        self.norm, self.out = RmsNorm(size.width), nn.Linear(size.width, size.words, bias=False)
        if size.tied:
            self.out.weight = self.word.weight
        self.head = size.head

    def forward(self, ids: Tensor, keeps: bool = False) -> Tensor:
        """Scores (batch, length, words) of the next word."""
        x = self.word(ids)
        cos, sin = self._angles(ids.shape[1], x)
        for layer in self.layers:
            if self.checkpointing and torch.is_grad_enabled():
                x = checkpoints.checkpoint(layer, x, cos, sin, use_reentrant=False)
            else:
                x = layer(x, cos, sin, keeps)
        scores: Tensor = self.out(self.norm(x))
        return scores

    def _angles(self, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(length, device=like.device)
        speed = 500000.0 ** (-torch.arange(0, self.head, 2, device=like.device) / self.head)
        angle = places[None, :, None].float() * speed
        angle = torch.cat((angle, angle), dim=-1)
        cos, sin = (angle.cos() * 1.0).to(like.dtype), (angle.sin() * 1.0).to(like.dtype)
        return cos[:, None], sin[:, None]


def loss_of(scores: Tensor, ids: Tensor) -> Tensor:
    """The loss of guessing each next word, in fp32."""
    ahead = F.pad(ids, (0, 1), value=-100)[..., 1:].contiguous()
    return F.cross_entropy(scores.float().view(-1, scores.shape[-1]), ahead.view(-1))


def _job(size: Size, setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    training = setting.kind != "infer"
    with torch.device(device):
        before = torch.get_default_dtype()
        torch.set_default_dtype({"bf16": torch.bfloat16, "fp16": torch.float16}.get(setting.precision, before))
        try:
            net = prepared(Llama(size, bool(setting.options["checkpointing"]) and training), setting)
        finally:
            torch.set_default_dtype(before)
        ids = torch.randint(0, 30000, (setting.batch, int(setting.options["length"])))
    if not training:
        return Job(steps(net, lambda: net(ids, bool(setting.options["cache"])), setting, device, None), setting.batch)
    adamw = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=True) if setting.kind == "train" else None
    return Job(steps(net, lambda: loss_of(net(ids), ids), setting, device, adamw), setting.batch)


def _workload(name: str) -> Workload:
    size = SIZES[name]
    return Workload(
        name,
        f"{name} as transformers runs it: attention as one kernel, AdamW by lists, activations computed again if asked",
        "huggingface/transformers 5.24; stas00/ml-engineering training/performance/benchmarks/torch-compile-bench.py",
        "seq",
        1,
        lambda setting, device: _job(size, setting, device),
        {"length": 512, "checkpointing": True, "cache": True},
    )


LLAMAS = tuple(_workload(name) for name in SIZES)
