"""Three well-known training steps in plain torch: GPT-2, ResNet-50 and a language model with an LSTM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gpututor.workloads.language.gpt2 import Gpt2
from gpututor.workloads.vision.resnets import ResNet50

F = nn.functional
Step = Callable[[], Tensor]


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
