"""The asker's translator on the simulated GPU: the CPU's losses over 50 steps, and the same timeline every time."""

from __future__ import annotations

import pytest

from gpututor import timeline_file
from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.jobs.seq2seq import Seq2SeqJob
from gpututor.model.tape import Tape
from gpututor.simgpu import simulated_gpu

N_STEPS = 50


def trained(device: str) -> tuple[list[float], Tape | None]:
    if device == "cpu":
        job = Seq2SeqJob("cpu", seed=11, n_steps=N_STEPS)
        return [job.step(k) for k in range(N_STEPS)], None
    with simulated_gpu(DEFAULT_MACHINE, what="seq2seq") as sim:
        job = Seq2SeqJob("simgpu", seed=11, n_steps=N_STEPS)
        losses = []
        for k in range(N_STEPS):
            sim.begin_step(1)
            losses.append(job.step(k))
        sim.end_run()
        return losses, sim.tape


@pytest.fixture(scope="module")
def twice() -> list[tuple[list[float], Tape | None]]:
    return [trained("simgpu"), trained("simgpu")]


def test_fifty_losses_equal_the_cpus_to_the_bit(twice):
    on_cpu, _ = trained("cpu")

    assert twice[0][0] == on_cpu
    assert len(set(on_cpu)) == N_STEPS


def test_the_same_run_gives_the_same_timeline_byte_for_byte(twice):
    one, two = (timeline_file.to_bytes(tape.price(machine(DEFAULT_MACHINE))) for _, tape in twice)

    assert one == two
    assert len(one) > 100_000
