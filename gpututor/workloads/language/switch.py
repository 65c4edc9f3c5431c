"""A Switch Transformer: T5's form, every second feed-forward part split into experts of which each word takes one.

Source of every fact here: huggingface/transformers 4.38 models/switch_transformers/modeling_switch_transformers.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

F = nn.functional
BUCKETS, FURTHEST = 32, 128  # relative places: near ones have a bucket each, far ones share


@dataclass(frozen=True, slots=True)
class Size:
    """How large it is; `capacity` words of a sequence, at most, go to one expert, the rest pass unchanged."""

    layers: int = 24
    width: int = 1024
    heads: int = 32
    head: int = 128
    wide: int = 16384
    experts: int = 4
    capacity: int = 64
    words: int = 32128


# sitar-lab/NeuSight scripts/asplos/data/DLmodel_configs/switchxl4.json
XL_4 = Size()


class Norm(nn.Module):
    """Root mean square norm without bias, six ops."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as `x`."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Attention(nn.Module):
    """Attention without biases and without a scale; a bias by relative place is added to the scores."""

    def __init__(self, size: Size, near: bool, both_ways: bool) -> None:
        super().__init__()
        inner = size.heads * size.head
        self.head, self.both_ways = size.head, both_ways
        self.q, self.k, self.v = (nn.Linear(size.width, inner, bias=False) for _ in range(3))
        self.o, self.drop = nn.Linear(inner, size.width, bias=False), nn.Dropout(0.1)
        self.near = nn.Embedding(BUCKETS, size.heads) if near else None

    def bias(self, length: int, mask: Tensor, heads: int) -> Tensor:
        """What all layers add to their scores: (1 or batch, heads, length, length)."""
        if self.near is None:
            return torch.zeros(1, heads, length, length, device=mask.device) + mask
        at = torch.arange(length, device=mask.device)
        found: Tensor = self.near(buckets(at[None, :] - at[:, None], self.both_ways))
        return found.permute(2, 0, 1).unsqueeze(0) + mask

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor) -> Tensor:
        """What each place of `x` takes from `memory` (batch, length, width)."""
        q, k, v = (
            p(t).view(t.shape[0], t.shape[1], -1, self.head).transpose(1, 2)
            for p, t in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += bias
        seen = torch.matmul(self.drop(F.softmax(scores, dim=-1)), v)
        mixed: Tensor = self.o(seen.transpose(1, 2).contiguous().view(x.shape[0], x.shape[1], -1))
        return mixed


def buckets(relative: Tensor, both_ways: bool) -> Tensor:
    """A bucket number for each distance between two places."""
    n_buckets, found = BUCKETS, torch.zeros_like(relative)
    if both_ways:
        n_buckets //= 2
        found = found + (relative > 0).to(torch.long) * n_buckets
        relative = relative.abs()
    else:
        relative = -torch.min(relative, torch.zeros_like(relative))
    exact = n_buckets // 2
    far = torch.log(relative.float() / exact) / math.log(FURTHEST / exact) * (n_buckets - exact)
    far = torch.min(exact + far.to(torch.long), torch.full_like(relative, n_buckets - 1))
    return found + torch.where(relative < exact, relative, far)


class Dense(nn.Module):
    """Two products with ReLU and dropout between them."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Linear(size.width, size.wide, bias=False), nn.Linear(size.wide, size.width, False)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as `x`."""
        fed: Tensor = self.narrow(self.drop(F.relu(self.widen(x))))
        return fed


class Experts(nn.Module):
    """A router and its experts, which take turns; the host waits twice for each, for where its words are.

    Where a word goes is not computed here: `chosen` says it, one mask (batch, length) for each expert.
    """

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.router, self.capacity = nn.Linear(size.width, size.experts, bias=False), size.capacity
        self.experts = nn.ModuleList(Dense(size) for _ in range(size.experts))

    def forward(self, x: Tensor, chosen: list[Tensor]) -> Tensor:
        """The same shape as `x`."""
        if self.training:
            x = x * torch.empty_like(x).uniform_(0.99, 1.01)
        shares = F.softmax(self.router(x), dim=-1)
        picked = F.one_hot(torch.argmax(shares, dim=-1), len(self.experts))
        picked = picked * (torch.cumsum(picked, dim=-2) <= self.capacity)
        best = torch.max(shares, dim=-1).values.unsqueeze(-1)
        torch.argmax(picked, dim=-1)
        following = x.clone()
        for k, (expert, mine) in enumerate(zip(self.experts, chosen, strict=True)):
            picked[:, :, k].bool()
            following[mine] = expert(x[mine])
        return best * following


class Layer(nn.Module):
    """Self-attention, in a decoder attention to the encoder, and a dense part or experts; norms first."""

    def __init__(self, size: Size, at: int, decoder: bool) -> None:
        super().__init__()
        self.own, self.drop = Attention(size, near=at == 0, both_ways=not decoder), nn.Dropout(0.1)
        self.other = Attention(size, near=False, both_ways=True) if decoder else None
        self.norms = nn.ModuleList(Norm(size.width) for _ in range(2 + decoder))
        self.feed: Experts | Dense = Experts(size) if at % 2 == 1 else Dense(size)

    def forward(
        self,
        x: Tensor,
        bias: Tensor,
        chosen: list[Tensor],
        memory: Tensor | None = None,
        to_memory: Tensor | None = None,
    ) -> Tensor:
        """The same shape as `x` (batch, length, width)."""
        h = self.norms[0](x)
        x = x + self.drop(self.own(h, h, bias))
        if self.other is not None:
            x = x + self.drop(self.other(self.norms[1](x), memory, to_memory))
        h = self.norms[-1](x)
        fed: Tensor = self.drop(self.feed(h, chosen) if isinstance(self.feed, Experts) else self.feed(h))
        return x + fed


class Switch(nn.Module):
    """Encoder and decoder with one table of words for both and for the output."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size, self.drop = size, nn.Dropout(0.1)
        self.word, self.scale = nn.Embedding(size.words, size.width), size.width**-0.5
        encoder, decoder = ([Layer(size, k, of_decoder) for k in range(size.layers)] for of_decoder in (False, True))
        self.encoder, self.decoder = nn.ModuleList(encoder), nn.ModuleList(decoder)
        self.biases = encoder[0].own.bias, decoder[0].own.bias, encoder[1].own.bias
        self.encoded, self.decoded = Norm(size.width), Norm(size.width)

    def forward(self, source: Tensor, target: Tensor, chosen: list[Tensor]) -> Tensor:
        """Scores (batch, length, words) of the target's next words."""
        length, heads = source.shape[1], self.size.heads
        least = torch.finfo(torch.float32).min
        seen = (1.0 - torch.ones(source.shape, device=source.device)[:, None, None, :]) * least
        at = torch.arange(length, device=source.device)
        later = (1.0 - (at[None, None, :] <= at[None, :, None]).float()[:, None]) * least + seen
        x = self.drop(self.word(source))
        bias = self.biases[0](length, seen, heads)
        for layer in self.encoder:
            x = layer(x, bias, chosen)
        memory = self.drop(self.encoded(x))
        x = self.drop(self.word(target))
        bias = self.biases[1](length, later, heads)
        to_memory = self.biases[2](length, seen, heads)  # of a layer without places: zeros
        for layer in self.decoder:
            x = layer(x, bias, chosen, memory, to_memory)
        return F.linear(self.drop(self.decoded(x)) * self.scale, self.word.weight)
