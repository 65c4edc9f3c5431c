"""NCF: large embeddings of users and films and a small network on top.

Source of every fact here: NVIDIA/DeepLearningExamples PyTorch/Recommendation/NCF at 729963d, neumf.py and ncf.py.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import prepared, steps

F = nn.functional
N_USERS, N_FILMS = (
    138_493,
    26_744,
)  # MovieLens 20M (grouplens.org/datasets/movielens/20m): users, and films with ratings
FACTORS, WIDTHS = 64, (256, 256, 128, 64)


class NeuMf(nn.Module):
    """Matrix factors and a perceptron side by side; 31,832,577 parameters.

    Source of the count: lambdal/deeplearning-benchmark at aa5addb, logs of PyTorch_ncf_FP32.
    """

    def __init__(self) -> None:
        super().__init__()
        self.factors = nn.ModuleList(nn.Embedding(n, FACTORS) for n in (N_USERS, N_FILMS))
        self.features = nn.ModuleList(nn.Embedding(n, WIDTHS[0] // 2) for n in (N_USERS, N_FILMS))
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(WIDTHS))
        self.out = nn.Linear(WIDTHS[-1] + FACTORS, 1)

    def forward(self, users: Tensor, films: Tensor) -> Tensor:
        """One score a pair."""
        product = self.factors[0](users) * self.factors[1](films)
        x = torch.cat((self.features[0](users), self.features[1](films)), dim=1)
        for layer in self.layers:
            x = F.dropout(F.relu(layer(x)), 0.5, self.training)
        scores: Tensor = self.out(torch.cat((product, x), dim=1))
        return scores


def _ncf(setting: Setting, device: str) -> Job:
    """A step of the epoch's loop, whose data lie on the card already; Adam is apex's fused one."""
    assert setting.batch is not None
    with torch.device(device):
        net = prepared(NeuMf(), setting)
        users, films = torch.randint(0, N_USERS, (setting.batch,)), torch.randint(0, N_FILMS, (setting.batch,))
        liked = torch.zeros(setting.batch, 1)
        adam = torch.optim.Adam(net.parameters(), lr=0.0045, betas=(0.25, 0.5), fused=True)

    def loss_of() -> Tensor:
        wrong = F.binary_cross_entropy_with_logits(net(users, films), liked, reduction="none")
        return torch.mean(wrong.float().view(-1), 0)

    output = loss_of if setting.kind != "infer" else lambda: torch.sigmoid(net(users, films))
    return Job(steps(net, output, setting, device, adam), setting.batch)


NCF = Workload(
    "ncf",
    "NCF (NeuMF), MovieLens 20M, counted in pairs",
    "NVIDIA/DeepLearningExamples PyTorch/Recommendation/NCF at 729963d",
    "sample",
    2**20,
    _ncf,
)
