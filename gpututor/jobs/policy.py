"""A policy as small as most in reinforcement learning: two layers of 64 that learn a teacher's moves from states.

The teacher pushes a cart to the side to which its pole falls; states are drawn, so nothing needs to be simulated.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 64  # Stable-Baselines3's own MlpPolicy: two layers of 64 (its documentation, Policy Networks)
N_NUMBERS, N_MOVES = 4, 2  # of a state: place, speed, angle and its speed; left and right, as Gym's CartPole
BATCH = 64  # Stable-Baselines3's PPO
LEARNING_RATE = 3e-3  # our choice: ten times that of its PPO, since a teacher tells more than a reward
GAINS = (0.3, 0.5, 2.0, 1.0)  # our choice: the angle decides first


def network() -> nn.Module:
    """A state to a score for each move."""
    return nn.Sequential(
        nn.Linear(N_NUMBERS, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, N_MOVES)
    )


def states(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """`n` states (n, 4) and the teacher's moves (n,), on the host; no numbers but those of the seed."""
    seen = torch.randn(n, N_NUMBERS, generator=torch.Generator().manual_seed(seed))
    return seen, (seen @ torch.tensor(GAINS) > 0).long()


class PolicyJob:
    """The policy's training on a device, a batch of states a step."""

    def __init__(self, device: torch.device, n_states: int = 4096) -> None:
        torch.manual_seed(0)
        self.net = network().to(device)
        self.adam = torch.optim.Adam(self.net.parameters(), lr=LEARNING_RATE)
        self.n_batches = n_states // BATCH
        self.states, self.moves = (each.to(device) for each in states(n_states))
        self.device = device

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`; its loss stays on the device."""
        at = k % self.n_batches * BATCH
        self.adam.zero_grad()
        scores = self.net(self.states[at : at + BATCH])
        loss = nn.functional.cross_entropy(scores, self.moves[at : at + BATCH])
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        self.adam.step()
        return loss.detach()

    def held_out(self) -> float:
        """The loss on states that it never saw."""
        seen, moves = (each.to(self.device) for each in states(1024, seed=1))
        with torch.no_grad():
            return float(nn.functional.cross_entropy(self.net(seen), moves))
