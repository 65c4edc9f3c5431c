"""The ledger and its findings on traces that others recorded, beside numbers from plain interval arithmetic."""

import json
from functools import cache

import pytest

from gpututor.causes import Cause, find_causes
from gpututor.ledger import Account, charge, charge_both, without
from gpututor.ledger.device import State, spans_of, stretches
from gpututor.trace import read

POINTS = 0.005  # half a percentage point


@pytest.fixture(scope="module")
def trace(shared):
    folder = shared / "traces"
    reference = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))

    @cache
    def get(name):
        return read(folder / f"{name}.json.gz"), reference[f"{name}.json.gz"]["reference"]

    return get


@pytest.mark.parametrize("name", ["v100-resnet50-workers0", "a100-ddp-control", "v100-dlrm-rank1", "mi300-bert-small"])
def test_time_with_anything_on_the_gpu_is_the_published_one(trace, name):
    timeline, reference = trace(name)
    cut = stretches(spans_of(timeline, None), timeline.window_ns)
    some_ns = sum(s.end_ns - s.start_ns for s in cut if s.state is not State.IDLE)

    assert some_ns / timeline.duration_ns == pytest.approx(reference["step_busy_pct"] / 100, abs=1e-4)


@pytest.mark.parametrize("name", ["v100-resnet50-workers0", "v100-resnet50-workers4", "v100-dlrm-rank0"])
def test_waiting_for_input_is_the_idle_time_inside_the_loader(trace, name):
    timeline, reference = trace(name)
    expected = reference["idle_in_dataloader_pct"] / 100

    assert charge(timeline).share(Account.WAITING_FOR_INPUT) == pytest.approx(expected, abs=POINTS)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("v100-resnet50-workers0", Cause.WAITING_FOR_INPUT),
        ("rtx2080ti-resnet", Cause.WAITING_FOR_INPUT),
        ("a100-ddp-control", Cause.EXPOSED_COMMUNICATION),
        ("v100-dlrm-rank1", Cause.EXPOSED_COMMUNICATION),
        ("h100-bert-small", Cause.LAUNCH_BOUND),
        ("mi300-bert-small", Cause.LAUNCH_BOUND),
    ],
)
def test_the_largest_cause_is_the_one_that_the_trace_is_known_for(trace, name, cause):
    causes = [f for f in find_causes(trace(name)[0]) if f.share is not None]

    assert causes[0].cause is cause


def test_a_healthy_job_has_no_cause(trace):
    findings = find_causes(trace("v100-ns-healthy")[0])

    assert Cause.NONE_FOUND in [f.cause for f in findings]
    assert all(f.share is None for f in findings)


def test_a_trace_without_the_hosts_side_cannot_be_explained(trace):
    assert Cause.CANNOT_TELL in [f.cause for f in find_causes(trace("mi210-gpu-only")[0])]


def test_four_workers_gained_no_more_than_the_bound_said(trace):
    before, after = charge(trace("v100-resnet50-workers0")[0]), charge(trace("v100-resnet50-workers4")[0])

    assert without(before, Account.WAITING_FOR_INPUT).step_ns <= after.step_ns < before.step_ns


def test_two_windows_that_disagree_say_so(trace):
    assert charge_both(trace("h100-timesformer")[0]).disagreement is not None
