"""What trains on the CPU trains on the simulated GPU with the same numbers, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gpututor.simgpu import simulated_gpu


class Words(nn.Module):
    """Embedding, a recurrent layer, dropout and a classifier, over 6 words of 4 sentences."""

    def __init__(self, recurrent: nn.Module, width: int) -> None:
        super().__init__()
        self.embedding, self.recurrent = nn.Embedding(30, 12), recurrent
        self.dropout, self.out = nn.Dropout(0.2), nn.Linear(width, 30)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.recurrent(self.embedding(ids))
        return self.out(self.dropout(hidden)).flatten(0, 1)


class Attends(nn.Module):
    """Embedding, one transformer layer with its own dropout, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 16)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=False)
        self.out = nn.Linear(16, 30)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.layer(self.embedding(ids))).flatten(0, 1)


class Picture(nn.Module):
    """Convolutions (one of them depthwise), batch and group norm, pooling, on 6x4 'pictures' of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8),
            nn.GroupNorm(2, 8),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.LayerNorm(32),
            nn.Linear(32, 24 * 30),
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.layers(ids[None, None].float() / 30).view(24, 30)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30), nn.Flatten(0, 1)),
    "gru": lambda: Words(nn.GRU(12, 20), 20),
    "lstm, two layers, both directions": lambda: Words(nn.LSTM(12, 10, 2, dropout=0.1, bidirectional=True), 20),
    "elman": lambda: Words(nn.RNN(12, 20), 20),
    "transformer layer": Attends,
    "convolutions and norms": Picture,
}
OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd, momentum, one by one": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adamw, fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
}


def losses_on(device: str, model: str, optimizer: str, n_steps: int = 4) -> list[float]:
    """Losses of a few training steps with everything on `device`, all from one seed."""
    torch.manual_seed(7)
    net = MODELS[model]().to(device)
    opt = OPTIMIZERS[optimizer](list(net.parameters()))
    losses = []
    for _ in range(n_steps):
        ids, targets = torch.randint(0, 30, (6, 4)), torch.randint(0, 30, (24,))
        loss = nn.functional.cross_entropy(net(ids.to(device)), targets.to(device))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
        opt.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("model", MODELS)
def test_a_model_trains_with_the_cpus_losses(model):
    on_cpu = losses_on("cpu", model, "adam")
    with simulated_gpu():
        on_simgpu = losses_on("simgpu", model, "adam")

    assert on_simgpu == on_cpu
    assert len(set(on_cpu)) > 1


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_steps_as_on_the_cpu(optimizer):
    on_cpu = losses_on("cpu", "linear", optimizer)
    with simulated_gpu():
        on_simgpu = losses_on("simgpu", "linear", optimizer)

    assert on_simgpu == on_cpu


def test_attention_and_its_gradients_equal_the_cpus():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 9, 8)

    def outcome(device: str) -> list[torch.Tensor]:
        ts = [t.clone().to(device).requires_grad_() for t in (q, k, v)]
        out = nn.functional.scaled_dot_product_attention(*ts, is_causal=True)
        out.square().sum().backward()
        return [out.detach().cpu(), *(t.grad.cpu() for t in ts)]

    expected = outcome("cpu")
    with simulated_gpu():
        found = outcome("simgpu")

    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_packed_sequences_equal_the_cpus():
    torch.manual_seed(0)
    lstm, x = nn.LSTM(5, 7), torch.randn(6, 3, 5)

    def outcome(device: str) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x.to(device), torch.tensor([6, 4, 1]))
        out, _ = lstm.to(device)(packed)
        return nn.utils.rnn.pad_packed_sequence(out)[0].detach().cpu()

    expected = outcome("cpu")
    with simulated_gpu():
        found = outcome("simgpu")

    assert torch.equal(found, expected)


def test_double_backward_and_checkpoint_work():
    from torch.utils.checkpoint import checkpoint

    with simulated_gpu():
        x = torch.tensor([1.0, 2.0, 3.0], device="simgpu", requires_grad=True)
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
        second = x.grad.tolist()
        x.grad = None
        checkpoint(lambda t: (t * 3).sum(), x, use_reentrant=False).backward()

        assert second == [6.0, 12.0, 18.0]
        assert x.grad.tolist() == [3.0, 3.0, 3.0]
