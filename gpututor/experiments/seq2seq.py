"""Lesson 2: train the asker's translator on a simulated card, and keep what it did.

Training really happens: gradients, updates and losses are the CPU's. What is handed back is the loss and the
account of every step, and the tape of the last few, which any card can then be priced with.
"""

from __future__ import annotations

from typing import Any

from gpututor.errors import ExperimentError
from gpututor.progress import Progress

WARMUP_STEPS = 3  # the first ones fill the plan memo and momentum-free SGD has no state: enough to be typical
TAPE_FILE = "seq2seq.tape.gz"


def train(
    progress: Progress, *, n_steps: int = 300, n_kept: int = 12, machine: str = "p3.2xlarge", seed: int = 0
) -> dict[str, Any]:
    """Train `n_steps` sentences on `machine`'s simulated card; the tape of the last `n_kept` goes into a file.

    Gives "steps": one row [wall ns, kernel ns, launches, loss] a step, "tape": the file's name, and what ran.
    A stopped run hands back the rows it has.

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

    what = "seq2seq, one sentence a step"
    rows: list[list[float]] = []
    losses: list[float | None] = []
    data: dict[str, Any] = {"what": what, "machine": machine, "n_steps": n_steps, "steps": rows, "tape": None}
    data["torch"] = torch.__version__
    kept_from = 0
    progress.tick(0, n_steps, "building the translator", data)
    with simulated_gpu(machine, what=what) as sim:
        job = Seq2SeqJob("simgpu", seed, n_steps=WARMUP_STEPS + n_steps)
        for k in range(WARMUP_STEPS):
            job.step(k)
        sim.tape.entries.clear()
        queue = sim.player.queue
        marks: list[int] = []
        for k in range(n_steps):
            before = (queue.host_ns, queue.summed_kernel_ns, queue.n_launches)
            marks.append(len(sim.tape.entries))
            sim.begin_step(1)
            loss = job.step(WARMUP_STEPS + k)
            after = (queue.host_ns, queue.summed_kernel_ns, queue.n_launches)
            rows.append([*(b - a for a, b in zip(before, after, strict=True)), loss])
            losses.append(loss)
            if len(marks) > n_kept:  # forget what won't be kept: a long run must not fill memory
                kept_from = marks[1]
                del sim.tape.entries[:kept_from]
                marks = [m - kept_from for m in marks[1:]]
            progress.tick(k + 1, n_steps, f"loss {loss:.2f}", data)
        sim.end_run()
        tape = Tape(what, list(sim.tape.entries), losses[-n_kept:])
    tape_file.save(tape, progress.results_dir / TAPE_FILE)
    data["tape"] = TAPE_FILE
    return data
