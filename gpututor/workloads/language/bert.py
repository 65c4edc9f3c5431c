"""BERT, in the styles of the codes whose speed was published."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

F = nn.functional
Chain = Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class Size:
    """How large a BERT is. Source: Devlin et al. 2018, arXiv 1810.04805, section 3."""

    layers: int
    width: int
    heads: int
    words: int = 30522
    length: int = 512


BASE, LARGE = Size(12, 768, 12), Size(24, 1024, 16)


def padded(size: Size) -> Size:
    """The size with its words filled up to a multiple of 8, as NVIDIA's scripts do for tensor cores."""
    return replace(size, words=-(-size.words // 8) * 8)


@dataclass(frozen=True, slots=True)
class Style:
    """How the sums are written.

    `length_first`: activations lie as (length, batch, width) in the layers, so that the heads of all sequences form one
    batched product without a copy; else (batch, length, width), where heads are copied apart. `gelu` is "erf", "tanh"
    (one kernel each), "added" (the bias by an op of its own before it) or "fused" (the same by TorchScript).
    `fused_attention`: one kernel for attention. `chained`: a compiler fuses chains of elementwise ops and norms.
    `clipping_waits`: the host reads a norm before it clips by it, as torch did before 1.10 (nn/utils/clip_grad.py).
    """

    length_first: bool
    gelu: str
    fused_attention: bool = False
    chained: bool = False
    clipping_waits: bool = False

    def chain(self, function: Chain) -> Chain:
        """The function, compiled if this style does that."""
        return torch.compile(function) if self.chained else function


STYLES = {
    # NVIDIA/DeepLearningExamples PyTorch/LanguageModeling/BERT/modeling.py at a7089640 (November 2019)
    "dle2019": Style(length_first=False, gelu="fused", clipping_waits=True),
    # the same file at f8b3a63f (July 2020)
    "dle2020": Style(length_first=False, gelu="added", clipping_waits=True),
    # the same file at a9e2c1d5 and later (March 2022); its pre-training goes through TorchScript with nvFuser
    "dle2022": Style(length_first=True, gelu="tanh"),
    "dle2022-nvfuser": Style(length_first=True, gelu="tanh", chained=True),
    # huggingface/transformers 4.38 models/bert/modeling_bert.py, attn_implementation="eager"
    "hf2023": Style(length_first=False, gelu="erf"),
    "sdpa": Style(length_first=False, gelu="erf", fused_attention=True),
}


def _biased_gelu(bias: Tensor, x: Tensor) -> Tensor:
    moved = bias + x
    return moved * 0.5 * (1.0 + torch.erf(moved / math.sqrt(2)))


def _shares(scores: Tensor, mask: Tensor, width: int, dropout: float) -> Tensor:
    """Attention's weights from its scores; `dropout` is 0 outside training."""
    return F.dropout(F.softmax(scores / math.sqrt(width) + mask, dim=-1), dropout, dropout > 0)


def _added(x: Tensor, to: Tensor, weight: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """What ends each half of a layer: dropout, the half's input added, the norm."""
    return F.layer_norm(F.dropout(x, dropout, dropout > 0) + to, weight.shape, weight, bias, 1e-12)


class Widen(nn.Module):
    """The feed-forward part's first layer with its activation."""

    def __init__(self, width_in: int, width: int, gelu: str) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(width, width_in)), nn.Parameter(torch.zeros(width))
        nn.init.normal_(self.weight, std=0.02)
        self.gelu = gelu
        self.fused = torch.compile(_biased_gelu) if gelu == "fused" else None

    def forward(self, x: Tensor) -> Tensor:
        """The widened activations."""
        if self.fused is not None:
            return self.fused(self.bias, F.linear(x, self.weight))
        if self.gelu == "added":
            return F.gelu(F.linear(x, self.weight) + self.bias)
        return F.gelu(F.linear(x, self.weight, self.bias), approximate="tanh" if self.gelu == "tanh" else "none")


class Attention(nn.Module):
    """Self-attention: scores, mask, softmax, dropout and the weighted sum, as separate ops unless the style fuses."""

    def __init__(self, width: int, heads: int, style: Style, dropout: float) -> None:
        super().__init__()
        self.heads, self.style, self.dropout, self.shares = heads, style, dropout, style.chain(_shares)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """What each place takes from the others, in the shape of `x`; `mask` is added to the scores."""
        parts = self.query(x), self.key(x), self.value(x)
        return self._length_first(*parts, mask) if self.style.length_first else self._batch_first(*parts, mask)

    def _batch_first(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = query.shape
        q, k, v = (t.view(batch, length, self.heads, -1).permute(0, 2, 1, 3) for t in (query, key, value))
        dropout = self.dropout if self.training else 0.0
        if self.style.fused_attention:
            seen = F.scaled_dot_product_attention(q, k, v, mask, dropout)
        else:
            scores = torch.matmul(q, k.transpose(-1, -2))
            seen = torch.matmul(self.shares(scores, mask, width // self.heads, dropout), v)
        return seen.permute(0, 2, 1, 3).contiguous().view(batch, length, width)

    def _length_first(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        length, batch, width = query.shape
        n = batch * self.heads
        q, v = (t.view(length, n, -1).transpose(0, 1) for t in (query, value))
        scores = torch.bmm(q, key.view(length, n, -1).permute(1, 2, 0)).view(batch, self.heads, length, length)
        dropout = self.dropout if self.training else 0.0
        shares = self.shares(scores, mask, width // self.heads, dropout).view(n, length, length)
        return torch.bmm(shares, v).transpose(0, 1).contiguous().view(length, batch, width)


class Layer(nn.Module):
    """Attention and a feed-forward part four times as wide, each with dropout, its input added, then a norm."""

    def __init__(self, width: int, heads: int, style: Style, dropout: float) -> None:
        super().__init__()
        self.attention, self.project = Attention(width, heads, style, dropout), nn.Linear(width, width)
        self.widen, self.narrow = Widen(width, 4 * width, style.gelu), nn.Linear(4 * width, width)
        self.after_attention, self.after_feed = (nn.LayerNorm(width, eps=1e-12) for _ in range(2))
        self.dropout, self.added = dropout, style.chain(_added)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The same shape as `x`."""
        dropout = self.dropout if self.training else 0.0
        x = self.added(self.project(self.attention(x, mask)), x, *self.after_attention.parameters(), dropout)
        return self.added(self.narrow(self.widen(x)), x, *self.after_feed.parameters(), dropout)


class Bert(nn.Module):
    """Embeddings and layers; `pooler` is a dense layer with tanh on the first place (335,141,888 parameters if large).

    Source for the count: HF's bert-large-uncased without heads.
    """

    def __init__(self, size: Size, style: Style, dropout: float = 0.1) -> None:
        super().__init__()
        self.style = style
        self.word, self.place = nn.Embedding(size.words, size.width), nn.Embedding(size.length, size.width)
        self.part, self.norm = nn.Embedding(2, size.width), nn.LayerNorm(size.width, eps=1e-12)
        self.drop, self.pooler = nn.Dropout(dropout), nn.Linear(size.width, size.width)
        self.layers = nn.ModuleList(Layer(size.width, size.heads, style, dropout) for _ in range(size.layers))

    def forward(self, ids: Tensor, parts: Tensor, seen: Tensor) -> Tensor:
        """The last layer's activations (batch, length, width); `seen` is 1 where a word is and 0 where padding is."""
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        if self.style.length_first or self.style.gelu in ("fused", "added"):
            places = places.expand_as(ids)  # NVIDIA's code looks places up for each sequence
        mask = (1.0 - seen[:, None, None, :].to(self.word.weight.dtype)) * -10000.0
        x = self.drop(self.norm(self.word(ids) + self.part(parts) + self.place(places)))
        if self.style.length_first:
            x = x.transpose(0, 1)
        for layer in self.layers:
            x = layer(x, mask)
        found: Tensor = x.transpose(0, 1).contiguous() if self.style.length_first else x
        return found

    def pooled(self, x: Tensor) -> Tensor:
        """One vector for each sequence, from its first place."""
        vectors: Tensor = torch.tanh(self.pooler(x[:, 0]))
        return vectors


class Answering(nn.Module):
    """BERT with the two scores that mark an answer's first and last word."""

    def __init__(self, size: Size, style: Style) -> None:
        super().__init__()
        self.bert, self.out = Bert(size, style), nn.Linear(size.width, 2)

    def forward(self, ids: Tensor, parts: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (batch, length) of the first and of the last word."""
        x = self.bert(ids, parts, seen)
        self.bert.pooled(x)  # computed and not used, as in the code that was measured
        first, last = self.out(x).split(1, dim=-1)
        return first.squeeze(-1), last.squeeze(-1)


class Pretraining(nn.Module):
    """BERT with its two tasks: the hidden words, with the embedding's table as output, and whether two parts belong."""

    def __init__(self, size: Size, style: Style) -> None:
        super().__init__()
        self.bert, self.dense = Bert(size, style), Widen(size.width, size.width, style.gelu)
        self.norm, self.follows = nn.LayerNorm(size.width, eps=1e-12), nn.Linear(size.width, 2)
        self.bias = nn.Parameter(torch.zeros(size.words))

    def forward(self, ids: Tensor, parts: Tensor, seen: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Scores (places, words) of the places numbered in `hidden` (all by default), and (batch, 2)."""
        x = self.bert(ids, parts, seen)
        follows: Tensor = self.follows(self.bert.pooled(x))
        rows = x.flatten(0, 1)
        rows = self.norm(self.dense(rows if hidden is None else rows.index_select(0, hidden)))
        table = self.bert.word.weight
        return (F.linear(rows, table, self.bias) if hidden is None else F.linear(rows, table) + self.bias), follows


class Classifying(nn.Module):
    """BERT with scores for two classes."""

    def __init__(self, size: Size, style: Style) -> None:
        super().__init__()
        self.bert, self.drop, self.out = Bert(size, style), nn.Dropout(0.1), nn.Linear(size.width, 2)

    def forward(self, ids: Tensor, parts: Tensor, seen: Tensor) -> Tensor:
        """Scores (batch, 2)."""
        scores: Tensor = self.out(self.drop(self.bert.pooled(self.bert(ids, parts, seen))))
        return scores
