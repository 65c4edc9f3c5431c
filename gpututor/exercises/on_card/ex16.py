"""Exercise 16.2 in the learner's process: one step of two ranks, each with a simulated card and its own parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpututor.exercises.on_card.ex16_data import N_INPUTS, N_RANKS, RATE, SEED, dealt
from gpututor.lab.on_card import recorded_ranks


def run(train_step: Callable[..., Any], seed: int = SEED) -> dict[str, Any]:
    """What rank 0 launched and exchanged, and the weights of each rank after the step."""
    import torch

    def make(rank: int) -> Callable[[], Any]:
        device = torch.device("simgpu", rank)
        plain = torch.nn.Linear(N_INPUTS, 1, bias=False, device=device)
        with torch.no_grad():
            plain.weight.zero_()
        model = torch.nn.parallel.DistributedDataParallel(plain, device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        parts = [(torch.tensor(x).to(device), torch.tensor(y).view(-1, 1).to(device)) for x, y in dealt(seed)[rank]]

        def work() -> dict[str, Any]:
            train_step(model, optimizer, parts)
            return {"weights": plain.weight.detach().view(-1)}

        return work

    return recorded_ranks("p3.8xlarge", N_RANKS, make)
