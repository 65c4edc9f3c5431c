"""`gpututor bench speed`: the figures are what they say, and the bars are those that were promised."""

from __future__ import annotations

import json

import pytest
import torch

from gpututor.bench import models, sampling, speed
from gpututor.bench.models import Gpt2, ResNet50, Workload, step_of
from gpututor.bench.sampling import Sampling
from gpututor.bench.speed import Speed, median_s, speeds
from gpututor.cli import main

FINE = Speed(
    "a step",
    n_ops=1000,
    off_step_s=0.010,
    fake_step_s=0.2,
    n_small_ops=500,
    on_small_step_s=0.012,
    cpu_small_step_s=0.004,
)


def test_the_median_is_that_of_the_steps_after_the_warm_up():
    ticks = iter([0, 5, 10, 11, 20, 29])
    calls = []

    assert median_s(lambda: calls.append(1), 3, n_warmup=2, clock=lambda: next(ticks)) == 5
    assert len(calls) == 5


def test_figures_are_by_op_and_by_share():
    assert FINE.off_us == pytest.approx(10)
    assert FINE.share_of_fake == pytest.approx(0.05)
    assert FINE.on_over_cpu_us == pytest.approx(16)
    assert FINE.within_bars


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"off_step_s": 0.016}, id="16 µs an op"),
        pytest.param({"fake_step_s": 0.09}, id="more than a tenth of fake tensors"),
        pytest.param({"on_small_step_s": 0.015}, id="22 µs over the CPU"),
    ],
)
def test_one_bar_missed_is_outside(changed):
    fields = FINE.as_fields() | changed
    kept = {name: fields[name] for name in Speed.__slots__}

    assert not Speed(**kept).within_bars


def test_gpt2_and_resnet50_have_their_published_sizes():
    with torch.device("meta"):
        assert sum(p.numel() for p in Gpt2().parameters()) == 124_439_808  # OpenAI's smallest GPT-2
        assert sum(p.numel() for p in ResNet50().parameters()) == 25_557_032  # torchvision's table of weights


def tiny(device: str, foreach: bool):
    with torch.device(device):
        return step_of(torch.nn.Linear(4, 4), torch.randn(2, 4), torch.randint(0, 4, (2,)), foreach)


def test_an_optimizer_that_takes_all_parameters_in_one_op_makes_fewer_ops():
    many, few = (next(speeds(1, (Workload("tiny", tiny, tiny),), foreach=foreach)).n_ops for foreach in (False, True))

    assert few < many


def test_a_workload_is_measured_four_ways():
    (found,) = speeds(2, (Workload("tiny", tiny, tiny),))

    assert found.n_ops == found.n_small_ops > 20
    assert min(found.off_step_s, found.fake_step_s, found.on_small_step_s, found.cpu_small_step_s) > 0
    assert found.on_small_step_s > found.cpu_small_step_s


@pytest.mark.parametrize("workload", models.WORKLOADS, ids=lambda w: w.name)
def test_every_workload_trains_in_its_small_form(workload):
    step = workload.small("cpu", False)
    first = step().item()
    for _ in range(5):
        step()

    assert step().item() != first


def run(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.fixture
def measured(monkeypatch):
    """Everything that the command measures, measured before."""
    monkeypatch.setattr(speed, "speeds", lambda n_steps, foreach: iter([FINE]))
    monkeypatch.setattr(sampling, "sampling", lambda: Sampling("fake", 1, 0.0015, 0.0002))


def test_the_command_prints_a_row_for_each_workload(measured, capsys):
    out = run(capsys, "bench", "speed")

    assert "10.0 µs/op" in out
    assert "16.0 µs/op" in out
    assert "within" in out


def test_json_has_all_figures(measured, capsys):
    told = json.loads(run(capsys, "bench", "speed", "--json"))
    (row,) = told["steps"]

    assert told["sampler"]["core_share"] == pytest.approx(0.0015)
    assert row["workload"] == "a step"
    assert row["off_us"] == pytest.approx(10)
    assert row["within_bars"] is True


def test_the_command_says_what_the_sampler_takes(measured, capsys):
    assert "0.15\xa0% of a core at 5 Hz with 1 GPU of a fake driver" in run(capsys, "bench", "speed")


@pytest.mark.parametrize(("share", "within"), [(0.0019, True), (0.0021, False), (None, None)])
def test_the_samplers_bar_is_a_fifth_of_a_percent_of_a_core(share, within):
    assert Sampling("fake", 1, share, 0.0002).within_bar is within


def test_where_the_sampler_is_not_measured_the_command_says_why(measured, monkeypatch, capsys):
    monkeypatch.setattr(sampling, "sampling", lambda: Sampling("none", reason="no gcc here"))

    assert "not known here: no gcc here." in run(capsys, "bench", "speed")


def test_the_sampler_is_measured_in_a_process_of_its_own():
    found = sampling.sampling(0.5)

    assert found.core_share is not None or found.reason
    assert found.driver == "none" or 0 < found.core_share < 0.05
