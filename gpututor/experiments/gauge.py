"""Lesson 1: four workloads that all keep a card busy, run on the simulated card and accounted.

Their numbers are not computed, only followed by shape: a product of two 8192-square matrices
would take a laptop minutes, and nobody looks at its values here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch

WORKLOADS = ("one block", "elementwise", "matmul, fp32", "matmul, fp16")
ROW_LENGTH = 1 << 20
N_ELEMENTS = 1 << 26
SIDE = 8192


def _one_block(device: torch.device) -> Callable[[], Any]:
    import torch

    row = torch.randn(1, ROW_LENGTH, device=device)
    return lambda: torch.softmax(row, dim=1)


def _elementwise(device: torch.device) -> Callable[[], Any]:
    import torch

    x, y = (torch.randn(N_ELEMENTS, device=device) for _ in range(2))
    return lambda: torch.add(x, y)


def _matmul(dtype: str) -> Callable[[torch.device], Callable[[], Any]]:
    def make(device: torch.device) -> Callable[[], Any]:
        import torch

        a, b = (torch.randn(SIDE, SIDE, device=device).to(getattr(torch, dtype)) for _ in range(2))
        return lambda: torch.mm(a, b)

    return make


MAKERS = dict(zip(WORKLOADS, (_one_block, _elementwise, _matmul("float32"), _matmul("float16")), strict=True))


def run(progress: Progress, *, n_steps: int = 20, machine: str = "p3.2xlarge") -> dict[str, Any]:
    """Run each workload `n_steps` times after 5 for warm-up; gives the names of the tape files by workload."""
    import torch

    from gpututor.model import tape_file
    from gpututor.model.tape import Sync, Tape
    from gpututor.simgpu import simulated_gpu

    tapes: dict[str, str] = {}
    data = {"machine": machine, "n_steps": n_steps, "tapes": tapes, "torch": torch.__version__}
    total = len(MAKERS) * n_steps
    for w, (name, make) in enumerate(MAKERS.items()):
        with simulated_gpu(machine, numerics=False, what=name) as sim:
            step = make(torch.device("simgpu"))
            for _ in range(5):
                step()
            first = len(sim.tape.entries)
            for k in range(n_steps):
                sim.begin_step(1)
                step()
                progress.tick(w * n_steps + k + 1, total, name, data)
            sim.account(Sync("synchronize"))
            sim.end_run()
            tape = Tape(name, sim.tape.entries[first:], [None] * n_steps)
        tapes[name] = f"gauge-{w + 1}.tape.gz"
        tape_file.save(tape, progress.results_dir / tapes[name])
    return data
