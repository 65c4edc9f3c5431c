"""Steps of a job that is trained by several processes at once, each with a simulated card of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpututor.errors import RankFailed

if TYPE_CHECKING:
    import torch

    from gpututor.cards import Machine
    from gpututor.model.tape import Tape


@dataclass(frozen=True, slots=True)
class RanksDone:
    """What so many ranks did: each step's loss (their mean), and the tape of rank 0, which stands for all.

    `step_ns` is the mean wall time of a kept step, `memory_bytes` rank 0's peak, `held_out` the loss on samples that
    were never seen, None where the job doesn't say.
    """

    losses: list[float | None]
    step_ns: float
    memory_bytes: int
    held_out: float | None
    tape: Tape


def on_ranks(
    make: Callable[[torch.device], Callable[[int], Any]],
    machine: Machine,
    n_ranks: int,
    *,
    what: str,
    numerics: bool,
    n_samples: int | None,
    first_kept: int,
    end: int,
    tell: Callable[[int], None],
) -> RanksDone:
    """Train on `n_ranks` cards until step `end`, and keep the tape of the steps from `first_kept` on.

    `make(device)` is called in each rank, with its process group there, and gives the rank's step. With numerics every
    rank really trains; without, rank 0 does and the others are taken to do the same. `n_samples` is what all ranks
    together learn from in a step.

    Raises:
        RankFailed: a rank raised. What stopped the run, and a full memory, are raised as they were.
    """
    import torch
    import torch.distributed as dist

    from gpututor.model.tape import Sync, Tape
    from gpututor.simgpu.cards.distributed import launch
    from gpututor.simgpu.recording import number_of
    from gpututor.simgpu.session import current

    def work(rank: int) -> tuple[int, int, list[float | None], Any]:
        dist.init_process_group("nccl")
        step, session = make(torch.device("simgpu", torch.accelerator.current_device_index())), current.session
        losses: list[Any] = []
        share = None if n_samples is None else n_samples // n_ranks
        about = getattr(step, "about", lambda _k: (share,))

        def go_on(until: int) -> None:
            while len(losses) < until:
                if len(losses) >= first_kept:
                    session.begin_step(*about(len(losses)))
                losses.append(step(len(losses)))
                if rank == 0:
                    tell(len(losses))

        go_on(first_kept)
        session.account(Sync("synchronize"))
        dist.barrier()
        first, began_ns = len(session.tape.entries), session.host_ns
        go_on(end)
        session.account(Sync("synchronize"))
        session.end_run()
        took_ns = session.host_ns - began_ns
        asked = getattr(step, "held_out", None) if rank == 0 and numerics else None
        return first, took_ns, [number_of(loss) for loss in losses], None if asked is None else float(asked())

    try:
        ran = launch(work, machine, n_ranks, numerics=numerics, in_step=not numerics, what=what)
    except RankFailed as failed:
        if type(failed.__cause__).__name__ in ("Stopped", "OutOfMemoryError"):
            raise failed.__cause__ from None  # type: ignore[misc]
        raise
    first, took_ns, _, held_out = ran.results[0]
    each = [one[2] for one in ran.results]
    losses = [None if None in row else sum(row) / len(row) for row in zip(*each, strict=True)]
    tape = Tape(what, ran.tapes.tapes[0].entries[first:], losses[first_kept:], n_ranks=n_ranks)
    memory_bytes = ran.sessions[0].memory.peak_bytes
    return RanksDone(losses, took_ns / (end - first_kept), memory_bytes, held_out, tape)
