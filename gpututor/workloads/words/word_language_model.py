"""The word language model of PyTorch's examples: two LSTM layers over WikiText-2.

Source of every fact here: pytorch/examples word_language_model, main.py and model.py.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import autocast, prepared

F = nn.functional
N_WORDS = 33_278  # WikiText-2 (Merity et al. 2016, arXiv 1609.07843, table 1)


class WordModel(nn.Module):
    """Embedding, LSTM, and a score for every word."""

    def __init__(self, width: int, n_layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_WORDS, width)
        self.lstm = nn.LSTM(width, width, n_layers, dropout=0.2)
        self.out = nn.Linear(width, N_WORDS)

    def forward(self, words: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Logarithms of probabilities (position, text, word), and the next state."""
        out, state = self.lstm(F.dropout(self.embedding(words), 0.2, self.training), state)
        return F.log_softmax(self.out(F.dropout(out, 0.2, self.training)), dim=-1), state


def _word_model(setting: Setting, device: str) -> Job:
    """A step of its loop: gradients clipped to 0.25, plain SGD by hand, the loss read each step."""
    assert setting.batch is not None
    width, n_layers, n_steps = (int(setting.options[name]) for name in ("width", "layers", "steps"))
    with torch.device(device):
        net = prepared(WordModel(width, n_layers), setting)
        words, targets = (torch.randint(0, N_WORDS, (n_steps, setting.batch)) for _ in range(2))
        size = (n_layers, setting.batch, width)
        dtype = next(net.parameters()).dtype
        state = torch.zeros(size, dtype=dtype), torch.zeros(size, dtype=dtype)
    kept = [state]

    def forward() -> Tensor:
        with autocast(setting, device):
            state = kept[0][0].detach(), kept[0][1].detach()
            logs, kept[0] = net(words, state)
            return F.nll_loss(logs.view(-1, N_WORDS), targets.view(-1))

    def train(k: int) -> Tensor:
        net.zero_grad()
        loss = forward()
        torch.autograd.backward(loss)
        if setting.kind == "train":
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.25)
            with torch.no_grad():
                for p in net.parameters():
                    if p.grad is not None:
                        p.add_(p.grad, alpha=-20.0)
        loss.item()
        return loss

    def infer(k: int) -> None:
        with torch.no_grad():
            forward().item()

    return Job(infer if setting.kind == "infer" else train, setting.batch * n_steps)


WORD_LANGUAGE_MODEL = Workload(
    "word_language_model",
    "PyTorch's word language model, LSTM on WikiText-2",
    "pytorch/examples word_language_model",
    "tok",
    20,
    _word_model,
    {"width": 200, "layers": 2, "steps": 35},
)
