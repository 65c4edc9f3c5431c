"""Lesson 1: four workloads that all keep a card busy, run on the simulated card and accounted.

Their numbers are not computed, only followed by shape: a product of two 8192-square matrices
would take a laptop minutes, and nobody looks at its values here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.errors import ExperimentError
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    import torch

    from gpututor.model.tape import Tape

Launch = Callable[[], Any]

ROW_LENGTH = 1 << 20
N_ELEMENTS = 1 << 26
SIDE = 8192
N_WARMUP = 5  # launches before the counting begins, which also fill the memo of shapes


@dataclass(frozen=True, slots=True)
class Workload:
    """One kernel, launched again and again: its name, how often, and what makes the launch on a device.

    The counts are chosen so that each keeps a V100 at work for about a second, the longest that nvidia-smi averages
    over (NVML reference, `nvmlUtilization_t`: between 1 and 1/6 second, depending on the product).
    """

    name: str
    n_launches: int
    make: Callable[[torch.device], Launch]


def _softmax_of_one_row(device: torch.device) -> Launch:
    import torch

    row = torch.randn(1, ROW_LENGTH, device=device)
    return lambda: torch.softmax(row, dim=1)


def _add(device: torch.device) -> Launch:
    import torch

    x, y = (torch.randn(N_ELEMENTS, device=device) for _ in range(2))
    return lambda: torch.add(x, y)


def _matmul(dtype: str) -> Callable[[torch.device], Launch]:
    def make(device: torch.device) -> Launch:
        import torch

        a, b = (torch.randn(SIDE, SIDE, device=device).to(getattr(torch, dtype)) for _ in range(2))
        return lambda: torch.mm(a, b)

    return make


SOFTMAX, ADD, FP32, FP16 = "softmax of one row", "adding two arrays", "large matmul, fp32", "large matmul, fp16"
WORKLOADS = (
    Workload(SOFTMAX, 1400, _softmax_of_one_row),
    Workload(ADD, 1000, _add),
    Workload(FP32, 13, _matmul("float32")),
    Workload(FP16, 95, _matmul("float16")),
)


def run(progress: Progress, *, thinned: int = 1, machine: str = "p3.2xlarge") -> dict[str, Any]:
    """Run the four workloads one after the other; `thinned` divides the number of launches of each.

    Gives "tapes", the names of the tape files by workload, and what ran. A stopped run hands back the workloads
    that it finished; nothing if it finished none.

    Raises:
        ExperimentError: `thinned` is less than 1.
    """
    if thinned < 1:
        raise ExperimentError(f"the launches were to be divided by {thinned}; that takes a number of 1 or more")
    import torch

    from gpututor.model import tape_file

    counts = [-(-each.n_launches // thinned) for each in WORKLOADS]
    tapes: dict[str, str] = {}
    data = {"machine": machine, "tapes": tapes, "torch": torch.__version__}
    done = 0
    for k, (workload, n_launches) in enumerate(zip(WORKLOADS, counts, strict=True), 1):
        tell = partial(progress.tick, n=sum(counts), note=workload.name, partial=data if tapes else None)
        try:
            tape = _launched(workload, n_launches, machine, tell, done)
        except Stopped:
            if not tapes:
                raise
            break
        done += n_launches
        file = f"gauge-{k}.tape.gz"
        tape_file.save(tape, progress.results_dir / file)
        tapes[workload.name] = file
    return data


def _launched(workload: Workload, n_launches: int, machine: str, tell: Callable[[int], None], done: int) -> Tape:
    """The tape of one workload's launches, a step each; `tell` hears how many were made, `done` before it included."""
    import torch

    from gpututor.model.tape import Sync, Tape
    from gpututor.simgpu import simulated_gpu

    with simulated_gpu(machine, numerics=False, what=workload.name) as sim:
        launch = workload.make(torch.device("simgpu"))
        for _ in range(N_WARMUP):
            launch()
        sim.account(Sync("synchronize"))
        first = len(sim.tape.entries)
        for k in range(n_launches):
            sim.begin_step()
            launch()
            tell(done + k + 1)
        sim.account(Sync("synchronize"))
        sim.end_run()
        return Tape(workload.name, sim.tape.entries[first:], [None] * n_launches)
