"""A sweep: each variant really trains, keeps its last steps, and is alone on its card."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gpututor.errors import ExperimentError
from gpututor.experiments.sweeps import Variant, measure, simulate
from gpututor.model import tape_file
from gpututor.progress import Progress, Stopped

N_SAMPLES = 8


class Straight:
    """Least squares on a device; `after` collects what a step was called with."""

    def __init__(self, device: torch.device) -> None:
        torch.manual_seed(0)
        self.x = torch.randn(N_SAMPLES, 3, device=device)
        self.model = nn.Linear(3, 1).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def __call__(self, k: int) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = ((self.model(self.x) - 1) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def held_out(self) -> float:
        return float(self.model.bias.detach().cpu()[0])


def too_large(device: torch.device):
    kept = torch.empty(2**35, device=device)
    return lambda k: kept.sum()


STRAIGHT = Variant("straight", "straight", Straight, 1, N_SAMPLES)


def on_cpu(n_steps: int) -> tuple[list[float], float]:
    job = Straight(torch.device("cpu"))
    return [float(job(k)) for k in range(n_steps)], job.held_out()


def simulated(folder, variants, **more):
    return simulate(Progress(results_dir=folder), variants, what="a test", **more)


def test_losses_are_the_cpus(tmp_path):
    (point,) = simulated(tmp_path, [STRAIGHT], n_steps=5, n_warmup=2)["points"]
    losses, held_out = on_cpu(7)

    assert point["losses"] == losses[2:]
    assert point["held_out"] == held_out


def test_the_tape_holds_the_last_steps_only(tmp_path):
    data = simulated(tmp_path, [STRAIGHT], n_steps=9, n_kept=3)
    tape = tape_file.load(tmp_path / data["tapes"]["straight"])

    assert tape.n_steps == 3
    assert tape.losses == data["points"][0]["losses"][-3:]


def test_the_time_of_a_step_is_that_of_the_kept_ones(tmp_path):
    from gpututor.lookup import machine_named
    from gpututor.replay import play_file

    data = simulated(tmp_path, [STRAIGHT], n_steps=9, n_kept=3, machine="T4")
    played = play_file(tmp_path / data["tapes"]["straight"], machine_named("T4"))

    assert played.step_ns == pytest.approx(data["points"][0]["step_ns"], rel=0.01)


def test_what_does_not_fit_is_a_sentence_and_the_others_go_on(tmp_path):
    huge = Variant("huge", "huge", too_large, numerics=False)
    data = simulated(tmp_path, [huge, STRAIGHT], n_steps=2)

    assert "out of memory" in data["points"][0]["trouble"]
    assert data["points"][1]["trouble"] is None
    assert list(data["tapes"]) == ["straight"]


def test_without_numerics_there_is_no_loss(tmp_path):
    (point,) = simulated(tmp_path, [Variant("shapes", "by shape", Straight, numerics=False)], n_steps=2)["points"]

    assert point["losses"] == [None, None]
    assert point["held_out"] is None


def test_a_stopped_sweep_hands_back_the_variants_it_finished(tmp_path):
    ticks = []

    def stop_in_the_second() -> bool:
        ticks.append(1)
        return len(ticks) > 4  # the first takes four: two of warm-up and two that count

    progress = Progress(stop_asked=stop_in_the_second, results_dir=tmp_path)
    data = simulate(progress, [STRAIGHT, Variant("b", "b", Straight)], what="a test", n_steps=2, n_warmup=2)

    assert [point["key"] for point in data["points"]] == ["straight"]


def test_stopped_before_the_first_is_done_there_is_nothing_to_hand_back(tmp_path):
    with pytest.raises(Stopped):
        simulate(Progress(stop_asked=lambda: True, results_dir=tmp_path), [STRAIGHT], what="a test", n_steps=2)


@pytest.mark.parametrize(("variants", "n_steps"), [([], 3), ([STRAIGHT], 0)])
def test_nothing_to_run_is_told(tmp_path, variants, n_steps):
    with pytest.raises(ExperimentError, match="takes at least one of each"):
        simulated(tmp_path, variants, n_steps=n_steps)


def test_on_the_processor_the_same_steps_are_timed(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path))
    data = measure(Progress(results_dir=tmp_path), [STRAIGHT], what="a test", device="cpu", n_steps=4, n_warmup=1)
    (point,) = data["points"]

    assert point["losses"] == on_cpu(5)[0][1:]
    assert point["step_ns"] > 0
    assert data["gpu"] is None
