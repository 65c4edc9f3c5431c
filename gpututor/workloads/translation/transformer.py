"""The Transformer for translation as NVIDIA's fairseq runs it: sentences of one length, half attention by hand.

Source of every fact here: NVIDIA/DeepLearningExamples PyTorch/Translation/Transformer at 729963d, files named below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

F = nn.functional
PADDING = 1


@dataclass(frozen=True, slots=True)
class Size:
    """How large a Transformer is. Source: Vaswani et al. 2017, arXiv 1706.03762, table 3."""

    width: int
    wide: int
    heads: int
    layers: int = 6
    words: int = 33712  # README: 33,708 without special tokens; fairseq/data/dictionary.py fills up to a multiple of 8


BASE, BIG = Size(512, 2048, 8), Size(1024, 4096, 16)


class Projections(torch.autograd.Function):
    """Products of one input with several tables, the first one scaled, each by one addmm of beta 0.

    Backward adds the input's gradients up inside the products. Source: fairseq/modules/multihead_attention.py,
    QueryLinear, KeyValueLinears and SelfAttentionLinears.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float, *tables: Tensor) -> tuple[Tensor, ...]:
        """One result for each table, shaped like `x`."""
        ctx.save_for_backward(x, *tables)
        ctx.scale, rows = scale, x.view(-1, x.shape[-1])
        scales = (scale, *[1.0] * (len(tables) - 1))
        return tuple(
            torch.addmm(rows, rows, t, beta=0.0, alpha=s).view(x.shape) for t, s in zip(tables, scales, strict=True)
        )

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Gradients of the input and of the tables."""
        x, *tables = ctx.saved_tensors
        columns = x.view(-1, x.shape[-1]).t()
        to_input: Tensor | None = None
        to_tables = []
        for k, (grad, table) in enumerate(zip(grads, tables, strict=True)):
            rows = grad.reshape(-1, grad.shape[-1])
            scale = ctx.scale if k == 0 else 1.0
            if to_input is None:
                to_input = torch.addmm(rows, rows, table.t(), beta=0.0, alpha=scale)
            else:
                to_input.addmm_(rows, table.t())
            to_tables.append(torch.addmm(table, columns, rows, beta=0.0, alpha=scale))
        assert to_input is not None
        return to_input.view(x.shape), None, *to_tables


class HeadsProduct(torch.autograd.Function):
    """A batched product of (heads, …) whose result lies length first, so that heads join again without a copy.

    Source: the same file, StridedBmm1Func and StridedBmm2Func: also the gradients are laid out so.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, length_first: bool) -> Tensor:
        """a @ b."""
        ctx.save_for_backward(a, b)
        ctx.length_first = length_first
        return _product(a, b, length_first)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Gradients of both."""
        a, b = ctx.saved_tensors
        if ctx.length_first:  # weights times values
            return _product(grad, b.transpose(1, 2), False), _product(a.transpose(1, 2), grad, True), None
        return _product(grad, b.transpose(1, 2), True), _product(grad.transpose(1, 2), a, True).transpose(1, 2), None


def _product(a: Tensor, b: Tensor, length_first: bool) -> Tensor:
    if not length_first:
        return torch.bmm(a, b)
    out = torch.empty(a.shape[1], a.shape[0], b.shape[2], dtype=a.dtype, device=a.device).transpose(0, 1)
    return torch.bmm(a, b, out=out)


class Attention(nn.Module):
    """Attention over (length, batch, width) without biases; its products are fp16 under autocast."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.scale, self.dropout = heads, (width // heads) ** -0.5, dropout
        self.query, self.key, self.value = (nn.Parameter(torch.empty(width, width)) for _ in range(3))
        for table in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(table)
        self.project = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, memory: Tensor | None, later: Tensor | None) -> Tensor:
        """The shape of `x`; looks at `memory`, or at `x` itself; `later` is added to the scores to hide what comes."""
        half = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        with torch.autocast(x.device.type, enabled=False):
            q, k, v = self._parts(x.to(half), None if memory is None else memory.to(half), half)
            q, k, v = (t.view(t.shape[0], t.shape[1] * self.heads, -1).transpose(0, 1) for t in (q, k, v))
            scores: Tensor = HeadsProduct.apply(q, k.transpose(1, 2), False)  # type: ignore[no-untyped-call]
            if later is not None:
                scores += later.to(half)[None]
        shares = F.dropout(F.softmax(scores, dim=-1), self.dropout, self.training)
        with torch.autocast(x.device.type, enabled=False):
            seen: Tensor = HeadsProduct.apply(shares.to(half), v, True)  # type: ignore[no-untyped-call]
        projected: Tensor = self.project(seen.transpose(0, 1).contiguous().view(x.shape))
        return projected

    def _parts(self, x: Tensor, memory: Tensor | None, half: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = self.query.to(half), self.key.to(half), self.value.to(half)
        if memory is None:
            q, k, v = Projections.apply(x, self.scale, query, key, value)  # type: ignore[no-untyped-call]
            return q, k, v
        (q,) = Projections.apply(x, self.scale, query)  # type: ignore[no-untyped-call]
        return q, *Projections.apply(memory, 1.0, key, value)  # type: ignore[no-untyped-call]


class Norm(nn.LayerNorm):
    """apex's fused norm: in the format of autocast, its weights too. Source: apex/normalization/fused_layer_norm.py."""

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as `x`."""
        kind = x.device.type
        if not torch.is_autocast_enabled(kind):
            return super().forward(x)
        half = torch.get_autocast_dtype(kind)
        with torch.autocast(kind, enabled=False):
            return F.layer_norm(x.to(half), self.normalized_shape, self.weight.to(half), self.bias.to(half), self.eps)


class Layer(nn.Module):
    """Norms first; self-attention, attention to the source in a decoder, and a feed-forward part."""

    def __init__(self, size: Size, decoder: bool, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = dropout
        self.attentions = nn.ModuleList(Attention(size.width, size.heads, dropout) for _ in range(1 + decoder))
        self.norms = nn.ModuleList(Norm(size.width) for _ in range(2 + decoder))
        self.widen, self.narrow = nn.Linear(size.width, size.wide), nn.Linear(size.wide, size.width)

    def forward(self, x: Tensor, memory: Tensor | None, later: Tensor | None) -> Tensor:
        """The shape of `x` (length, batch, width)."""
        for k, attention in enumerate(self.attentions):
            x = x + self._drop(attention(self.norms[k](x), memory if k else None, None if k else later))
        fed = self._drop(F.threshold(self.widen(self.norms[-1](x)), 0.0, 0.0))
        return x + self._drop(self.narrow(fed))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class Transformer(nn.Module):
    """Encoder and decoder that share one table of words, with the output (big: 210,808,832 parameters).

    Source: fairseq/models/transformer.py, transformer_wmt_en_de_big_t2t with --share-all-embeddings.
    """

    places: Tensor
    later: Tensor

    def __init__(self, size: Size, longest: int = 1024) -> None:
        super().__init__()
        self.word, self.scale = nn.Embedding(size.words, size.width, PADDING), math.sqrt(size.width)
        self.encoder = nn.ModuleList(Layer(size, decoder=False) for _ in range(size.layers))
        self.decoder = nn.ModuleList(Layer(size, decoder=True) for _ in range(size.layers))
        self.encoded, self.decoded = Norm(size.width), Norm(size.width)
        self.register_buffer("places", torch.randn(longest + PADDING + 1, size.width), persistent=False)
        self.register_buffer("later", torch.full((longest, longest), -math.inf).triu(1), persistent=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores (batch, length, words) for the target's next words; both (batch, length) of word numbers."""
        padded = source.eq(PADDING)
        _asked(padded)
        x = self._embedded(source)
        for layer in self.encoder:
            x = layer(x, None, None)
        memory = self.encoded(x)
        x = self._embedded(target)
        for layer in self.decoder:
            _asked(padded)  # each layer asks again whether any source word is padding, and the host waits
            x = layer(x, memory, self.later[: target.shape[1], : target.shape[1]])
        return F.linear(self.decoded(x).transpose(0, 1), self.word.weight)

    def _embedded(self, ids: Tensor) -> Tensor:
        at = torch.arange(PADDING + 1, ids.shape[1] + PADDING + 1, device=ids.device).expand_as(ids)
        places = self.places.index_select(0, at.reshape(-1)).view(*ids.shape, -1)
        x = self.scale * self.word(ids)
        x += places
        return F.dropout(x, 0.1, self.training).transpose(0, 1)


def _asked(padded: Tensor) -> bool:
    """Whether any is padding: a kernel, and a wait of the host. Batches are sorted by length, so none is here."""
    padded.any().item()
    return False
