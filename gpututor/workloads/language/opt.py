"""OPT, whose attention copies heads apart and adds its mask, as Hugging Face wrote it in 2023."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

F = nn.functional


@dataclass(frozen=True, slots=True)
class Size:
    """How large an OPT is. Source: Zhang et al. 2022, arXiv 2205.01068, table 1; words: facebook/opt-1.3b."""

    layers: int
    width: int
    heads: int
    words: int = 50272
    length: int = 2048


SIZES = {"opt-125m": Size(12, 768, 12), "opt-1.3b": Size(24, 2048, 32), "opt-2.7b": Size(32, 2560, 32)}


class Layer(nn.Module):
    """Norms first, attention, then a feed-forward part with ReLU, four times as wide."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(dropout)
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.key, self.value, self.query, self.project = (nn.Linear(width, width) for _ in range(4))
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The same shape as `x` (batch, length, width)."""
        x = x + self.drop(self._attention(self.before_attention(x), mask))
        rows = x.reshape(-1, x.shape[-1])
        rows = rows + self.drop(self.narrow(F.relu(self.widen(self.before_feed(rows)))))
        fed: Tensor = rows.view(x.shape)
        return fed

    def _attention(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape

        def apart(t: Tensor) -> Tensor:
            heads = t.view(batch, length, self.heads, -1).transpose(1, 2).contiguous()
            return heads.view(batch * self.heads, length, -1)

        query = self.query(x) * (width // self.heads) ** -0.5
        k, v, q = apart(self.key(x)), apart(self.value(x)), apart(query)
        scores = torch.bmm(q, k.transpose(1, 2)).view(batch, self.heads, length, length) + mask
        # the smallest number comes from the host for each layer, which makes the host wait
        least = torch.tensor(torch.finfo(scores.dtype).min, device=scores.device)
        shares = F.softmax(torch.max(scores, least).view(-1, length, length), dim=-1)
        seen = torch.bmm(shares, v).view(batch, self.heads, length, -1)  # its dropout is 0, which makes no kernel
        projected: Tensor = self.project(seen.transpose(1, 2).reshape(batch, length, width))
        return projected


class Opt(nn.Module):
    """OPT as transformers 4.38 runs it (opt-1.3b: 1,315,758,080 parameters).

    Source: huggingface/transformers models/opt/modeling_opt.py and modeling_attn_mask_utils.py; facebook/opt-1.3b.
    """

    def __init__(self, size: Size, dropout: float = 0.1) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(size.words, size.width, 1), nn.Embedding(size.length + 2, size.width)
        self.layers = nn.ModuleList(Layer(size.width, size.heads, dropout) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores (batch, length, words) of the next word, none of them padding."""
        x = self.word(ids)
        seen = torch.ones(ids.shape, device=ids.device)
        mask = causal_mask(seen, x.dtype)
        whole = seen.long()
        x = x + self.place((torch.cumsum(whole, dim=1).type_as(whole) * whole).long() - 1 + 2)
        for layer in self.layers:
            x = layer(x, mask)
        return F.linear(self.norm(x), self.word.weight)


def causal_mask(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to scores (batch, 1, length, length): the smallest number for later places and for padding."""
    batch, length = seen.shape
    least, at = torch.finfo(dtype).min, torch.arange(length, device=seen.device)
    later = torch.full((length, length), least, device=seen.device)
    later.masked_fill_(at < (at + 1).view(length, 1), 0)
    hidden = 1.0 - seen[:, None, None, :].expand(batch, 1, length, length).to(dtype)
    hidden = hidden.masked_fill(hidden.to(torch.bool), least)
    return later[None, None].expand(batch, 1, length, length).masked_fill(hidden.bool(), least)
