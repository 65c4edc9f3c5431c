"""Lesson 2: train the asker's translator on a simulated card, and keep what it did.

Training really happens: gradients, updates and losses are the CPU's. What is handed back is the loss and the
account of every step, and the tape of the last few, which any card can then be priced with.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from gpututor.errors import ExperimentError
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    from gpututor.jobs.seq2seq import Seq2SeqJob
    from gpututor.model.tape import Entry
    from gpututor.simgpu.session import Session

WARMUP_STEPS = 3  # the first ones fill the plan memo and momentum-free SGD has no state: enough to be typical
TAPE_FILE = "seq2seq.tape.gz"
WHAT = "seq2seq, one sentence a step"


def train(
    progress: Progress, *, n_steps: int = 300, n_kept: int = 8, machine: str = "p3.2xlarge", seed: int = 0
) -> dict[str, Any]:
    """Train `n_steps` sentences on `machine`'s simulated card; the tape of the last `n_kept` goes into a file.

    Gives "steps": one row [wall ns, kernel ns, launches, loss] a step, "tape": the file's name, and what ran.
    A stopped run hands back what it has, tape included; nothing if it had not done a step.

    Raises:
        ExperimentError: fewer than one step was asked for.
    """
    if n_steps < 1:
        raise ExperimentError(f"{n_steps} steps were asked for; training needs at least one")
    import torch

    from gpututor.jobs.seq2seq import Seq2SeqJob
    from gpututor.model import tape_file
    from gpututor.model.tape import Tape
    from gpututor.simgpu import simulated_gpu

    rows: list[list[float]] = []
    data: dict[str, Any] = {"what": WHAT, "machine": machine, "n_steps": n_steps, "steps": rows, "tape": None}
    data["torch"] = torch.__version__
    progress.tick(0, n_steps, "building the translator")  # stopped here there is nothing to hand back
    with simulated_gpu(machine, what=WHAT) as sim:
        job = Seq2SeqJob("simgpu", seed, n_steps=WARMUP_STEPS + n_steps)
        for k in range(WARMUP_STEPS):
            job.step(k)
        sim.tape.entries.clear()
        last = _LastSteps(sim.tape.entries, n_kept)
        for k in range(n_steps):
            last.begin()
            rows.append(_step(sim, job, WARMUP_STEPS + k))
            try:
                progress.tick(k + 1, n_steps, f"loss {rows[-1][-1]:.2f}", data)
            except Stopped:
                break
        sim.end_run()
        tape = Tape(WHAT, list(sim.tape.entries), [row[-1] for row in rows[-n_kept:]])
    tape_file.save(tape, progress.results_dir / TAPE_FILE)
    data["tape"] = TAPE_FILE
    return data


def _step(sim: Session, job: Seq2SeqJob, k: int) -> list[float]:
    """Train one sentence; gives its wall time and the sum of its kernels in nanoseconds, its launches, its loss."""
    queue = sim.player.queue
    before = (queue.host_ns, queue.summed_kernel_ns, queue.n_launches)
    sim.begin_step(1)
    loss = job.step(k)
    after = (queue.host_ns, queue.summed_kernel_ns, queue.n_launches)
    return [*(b - a for a, b in zip(before, after, strict=True)), loss]


class _LastSteps:
    """Drops all but the last `n_kept` steps from a tape that goes on growing: a long run must not fill memory."""

    def __init__(self, entries: list[Entry], n_kept: int) -> None:
        self._entries, self._n_kept = entries, n_kept
        self._begins: deque[int] = deque()

    def begin(self) -> None:
        """Call before each step."""
        if len(self._begins) == self._n_kept:
            self._begins.popleft()
            dropped = self._begins[0] if self._begins else len(self._entries)
            del self._entries[:dropped]
            self._begins = deque(at - dropped for at in self._begins)
        self._begins.append(len(self._entries))
