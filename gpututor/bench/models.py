"""Three well-known training steps in plain torch: GPT-2, ResNet-50 and a language model with an LSTM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

F = nn.functional
Step = Callable[[], Tensor]


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


class Bottleneck(nn.Module):
    """ResNet-50's block: 1x1, 3x3 and 1x1 convolutions around a sum; the stride is in the 3x3 one."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        sizes = ((width_in, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1))
        parts: list[nn.Module] = []
        for n_in, n_out, size, step in sizes:
            parts += [nn.Conv2d(n_in, n_out, size, step, size // 2, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(True)]
        self.path = nn.Sequential(*parts[:-1])
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or width_in != 4 * width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width_in, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Four times the width, and the size divided by the stride."""
        return F.relu(self.path(x) + self.shortcut(x), inplace=True)


class ResNet50(nn.Module):
    """ResNet-50 for 224x224 pictures by default; `width` and `blocks` make a smaller one.

    Source: He et al. 2015, "Deep Residual Learning for Image Recognition", table 1; 25.6 million parameters.
    """

    def __init__(self, classes: int = 1000, width: int = 64, blocks: tuple[int, ...] = (3, 4, 6, 3)) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)
        )
        parts: list[nn.Module] = []
        width_in = width
        for stage, n_blocks in enumerate(blocks):
            for k in range(n_blocks):
                parts.append(Bottleneck(width_in, width << stage, 2 if stage and not k else 1))
                width_in = 4 * width << stage
        self.body, self.out = nn.Sequential(*parts), nn.Linear(width_in, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        x = F.adaptive_avg_pool2d(self.body(self.stem(pictures)), 1)
        scores: Tensor = self.out(torch.flatten(x, 1))
        return scores


class WordLstm(nn.Module):
    """Embedding, a two-layer LSTM with dropout, and a classifier over the words."""

    def __init__(self, words: int = 33278, width: int = 650) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, 2, dropout=0.2)
        self.dropout, self.out = nn.Dropout(0.2), nn.Linear(width, words)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores (length, batch, words) of the next word."""
        hidden, _ = self.lstm(self.dropout(self.word(ids)))
        scores: Tensor = self.out(self.dropout(hidden))
        return scores


@dataclass(frozen=True, slots=True)
class Workload:
    """A training step at the size we speak of, and the same network so small that a laptop computes it at once.

    Both are made for a device, with an optimizer that takes all parameters in one op (`foreach`) or one by one.
    """

    name: str
    full: Callable[[str, bool], Step]
    small: Callable[[str, bool], Step]


def step_of(net: nn.Module, batch: Tensor, targets: Tensor, foreach: bool) -> Step:
    """One step of training with AdamW."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=foreach)

    def step() -> Tensor:
        loss = F.cross_entropy(net(batch).flatten(0, -2), targets.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        optimizer.step()
        return loss

    return step


def gpt2(device: str, foreach: bool, batch: int = 8, length: int = 512, words: int = 50257, **sizes: int) -> Step:
    """A step of GPT-2 on `device`."""
    with torch.device(device):
        ids, targets = torch.randint(0, words, (2, batch, length)).unbind(0)
        return step_of(Gpt2(words=words, **sizes), ids, targets, foreach)


def resnet50(device: str, foreach: bool, batch: int = 64, side: int = 224, width: int = 64) -> Step:
    """A step of ResNet-50 on `device`."""
    with torch.device(device):
        pictures, targets = torch.randn(batch, 3, side, side), torch.randint(0, 1000, (batch,))
        return step_of(ResNet50(width=width), pictures, targets, foreach)


def word_lstm(
    device: str, foreach: bool, batch: int = 20, length: int = 35, words: int = 33278, width: int = 650
) -> Step:
    """A step of the LSTM on `device`; words and width as in pytorch/examples word_language_model's larger runs."""
    with torch.device(device):
        ids, targets = torch.randint(0, words, (2, length, batch)).unbind(0)
        return step_of(WordLstm(words, width), ids, targets, foreach)


WORKLOADS = (
    Workload(
        "GPT-2, 12 layers, 8x512",
        gpt2,
        lambda device, foreach: gpt2(device, foreach, 2, 8, width=32, heads=4, words=100),
    ),
    Workload("ResNet-50, batch 64", resnet50, lambda device, foreach: resnet50(device, foreach, 2, 32, 4)),
    Workload("LSTM, 2 layers, 20x35", word_lstm, lambda device, foreach: word_lstm(device, foreach, 2, 4, 100, 16)),
)
