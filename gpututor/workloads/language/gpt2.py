"""GPT-2 and networks of its form, with attention as one kernel or as Hugging Face wrote it in 2023."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

F = nn.functional


@dataclass(frozen=True, slots=True)
class Size:
    """How large a network of GPT-2's form is."""

    layers: int
    width: int
    heads: int
    words: int = 50257
    length: int = 1024


# Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", table 2, and OpenAI's released weights
SIZES = {
    "gpt2": Size(12, 768, 12),
    "gpt2-medium": Size(24, 1024, 16),
    "gpt2-large": Size(36, 1280, 20),
    "gpt2-xl": Size(48, 1600, 25),
    # sitar-lab/NeuSight scripts/asplos/data/DLmodel_configs: gpt3_xl.json (wider than the paper's XL) and gpt3_27.json
    "gpt3-xl": Size(24, 3072, 24, length=2048),
    "gpt3-2.7b": Size(32, 2560, 32, length=2048),
}


class Layer(nn.Module):
    """One layer as GPT-2 has it: norms first, causal attention, then a feed-forward part four times as wide."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape (batch, length, width) with this layer's part added."""
        batch, length, width = x.shape
        parts = self.attend(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(batch, length, width))
        fed: Tensor = self.narrow(F.gelu(self.widen(self.before_feed(x))))
        return x + fed


class Gpt2(nn.Module):
    """GPT-2 with the sizes of its smallest form (124 million parameters) by default; words and output share a table.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", table 2.
    """

    def __init__(
        self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257, length: int = 1024
    ) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.out.weight = self.word.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Scores (batch, length, words) of the next word."""
        x = self.word(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        scores: Tensor = self.out(self.norm(x))
        return scores


# --- as Hugging Face wrote it -----------------------------------------------------------------------------------


class Turned(nn.Module):
    """A dense layer whose table is stored inputs first, used by one addmm."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(width_in, width)), nn.Parameter(torch.zeros(width))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """(..., width)."""
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


def gelu_by_steps(x: Tensor) -> Tensor:
    """The tanh form of gelu written out, which makes eight kernels forward."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class EagerLayer(nn.Module):
    """A layer whose attention is separate ops: scores, their scale, the causal mask, softmax, dropout, weighted sum."""

    causal: Tensor

    def __init__(self, size: Size, dropout: float) -> None:
        super().__init__()
        width = size.width
        self.heads, self.drop = size.heads, nn.Dropout(dropout)
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = Turned(width, 3 * width), Turned(width, width)
        self.widen, self.narrow = Turned(width, 4 * width), Turned(4 * width, width)
        causal = torch.ones(size.length, size.length, dtype=torch.bool).tril()[None, None]
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as `x` (batch, length, width)."""
        x = self.drop(self.project(self._attention(self.before_attention(x)))) + x
        fed: Tensor = self.drop(self.narrow(gelu_by_steps(self.widen(self.before_feed(x)))))
        return x + fed

    def _attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.attend(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).permute(0, 2, 1, 3) for t in parts)
        scores = torch.matmul(q, k.transpose(-1, -2))
        scores = scores / torch.full([], q.shape[-1] ** 0.5, dtype=scores.dtype, device=scores.device)
        least = torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype, device=scores.device)
        scores = torch.where(self.causal[:, :, :length, :length], scores, least)
        seen = torch.matmul(self.drop(F.softmax(scores, dim=-1)), v)
        return seen.permute(0, 2, 1, 3).contiguous().view(batch, length, width)


class EagerGpt2(nn.Module):
    """GPT-2 as transformers 4.38 runs it with `attn_implementation="eager"` (gpt2-large: 774,030,080 parameters).

    Source: huggingface/transformers models/gpt2/modeling_gpt2.py; the count is OpenAI's gpt2-large.
    """

    def __init__(self, size: Size, dropout: float = 0.1) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(size.words, size.width), nn.Embedding(size.length, size.width)
        self.layers = nn.ModuleList(EagerLayer(size, dropout) for _ in range(size.layers))
        self.norm, self.drop = nn.LayerNorm(size.width), nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores (batch, length, words) of the next word."""
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        x = self.drop(self.word(ids) + self.place(places))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.word.weight)
