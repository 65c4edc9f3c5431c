"""Vision transformers with patches of 16x16 pixels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.errors import SettingNotPossible
from gpututor.workloads.setting import Setting, Workload
from gpututor.workloads.vision.recipes import since, workload

F = nn.functional
# Dosovitskiy et al. 2020, arXiv 2010.11929, table 1; small: Touvron et al. 2020, arXiv 2012.12877, table 1.
SIZES = {"small": (12, 384, 6), "base": (12, 768, 12), "large": (24, 1024, 16)}  # layers, width, heads
PATCH = 16
ATTENTION = ("auto", "fused", "unfused")


class Attention(nn.Module):
    """Attention of all patches to all, in one fused op or as two products and a softmax.

    Source: timm/layers/attention.py, which takes the fused op from torch 2.0 on.
    """

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.joined, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape (batch, patches, width)."""
        batch, length, width = x.shape
        parts = self.joined(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind(0)
        if self.fused:
            seen = F.scaled_dot_product_attention(q, k, v)
        else:
            seen = (q * (width // self.heads) ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1) @ v
        projected: Tensor = self.project(seen.transpose(1, 2).reshape(batch, length, width))
        return projected


class Layer(nn.Module):
    """Norms first, attention, then a feed-forward part four times as wide."""

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.before_attention, self.before_feed = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attend = Attention(width, heads, fused)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        x = x + self.attend(self.before_attention(x))
        fed: Tensor = x + self.feed(self.before_feed(x))
        return fed


class Vit(nn.Module):
    """A vision transformer that reads the class from a token of its own."""

    def __init__(self, layers: int, width: int, heads: int, side: int, fused: bool, classes: int = 1000) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, (side // PATCH) ** 2 + 1, width))
        self.layers = nn.Sequential(*(Layer(width, heads, fused) for _ in range(layers)))
        self.norm, self.out = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        seen = self.patches(pictures).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(seen), -1, -1), seen), dim=1) + self.places
        scores: Tensor = self.out(self.norm(self.layers(x))[:, 0])
        return scores


def fuses(setting: Setting) -> bool:
    """Whether attention runs as one op: as the option "attention" says, or else by the version of torch.

    Raises:
        SettingNotPossible: the option is none of "auto", "fused" and "unfused".
    """
    asked = setting.options["attention"]
    if asked not in ATTENTION:
        raise SettingNotPossible(f"attention is {asked!r}; it has to be one of {', '.join(ATTENTION)}")
    return asked == "fused" or (asked == "auto" and since(setting, 2, 0))


def _vit(size: str) -> Workload:
    source = "Dosovitskiy et al. 2020, arXiv 2010.11929, table 1; timm/models/vision_transformer.py"
    return workload(
        f"vit_{size}_patch16_224",
        f"Vision transformer {size}",
        source,
        lambda setting: Vit(*SIZES[size], int(setting.options["side"]), fuses(setting)),
        128,
        {"attention": "auto"},
    )


VITS = tuple(_vit(size) for size in SIZES)
