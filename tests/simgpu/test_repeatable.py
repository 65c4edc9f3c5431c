"""The same run gives the same losses and the same bytes: in two processes at once, in two threads, under load."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from pathlib import Path

import torch
from torch import nn

from gpututor import timeline_file
from gpututor.simgpu import simulated_gpu


class Mixed(nn.Module):
    """A convolution, a recurrent layer with dropout, a norm and attention: what the plan memo sees of most models."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.gru = nn.Conv1d(8, 16, 3, padding=1), nn.GRU(16, 16, 2, dropout=0.1)
        self.norm, self.attention = nn.LayerNorm(16), nn.MultiheadAttention(16, 2, dropout=0.1)
        self.out = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, _ = self.gru(self.conv(x.permute(1, 2, 0)).permute(2, 0, 1))
        h = self.norm(h)
        return self.out(h + self.attention(h, h, h, need_weights=False)[0])


def fingerprint() -> str:
    """Losses of six steps, and the hash of the timeline's bytes."""
    torch.set_num_threads(1)
    with simulated_gpu("p3.2xlarge", what="mixed") as sim:
        torch.manual_seed(5)
        model = Mixed().to("simgpu")
        adam = torch.optim.AdamW(model.parameters(), lr=0.01)
        losses = []
        for _ in range(6):
            sim.begin_step(4)
            loss = model(torch.randn(7, 4, 8).to("simgpu")).square().mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
        sim.end_run()
        data = timeline_file.to_bytes(sim.timeline())
    return f"{losses} {len(data)} {hashlib.sha256(data).hexdigest()}"


def test_two_processes_at_once_and_two_threads_under_load_all_agree():
    command = [sys.executable, "-W", "ignore", str(Path(__file__))]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    done = threading.Event()

    def busy() -> None:
        while not done.is_set():
            sum(range(1000))

    found: list[str] = []
    load = threading.Thread(target=busy)
    readers = [threading.Thread(target=lambda: found.append(fingerprint())) for _ in range(2)]
    for thread in (load, *readers):
        thread.start()
    for reader in readers:
        reader.join()
    done.set()
    load.join()
    found += [process.communicate(timeout=120)[0].strip() for process in processes]

    assert len(found) == 4
    assert len(set(found)) == 1
    assert found[0].startswith("[")


if __name__ == "__main__":
    print(fingerprint())
