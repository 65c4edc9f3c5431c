"""Explaining a trace: shares beside other people's numbers, verdicts beside what the traces are known for."""

from __future__ import annotations

import json
from functools import cache

import pytest

from gpututor.errors import TimelineError
from gpututor.explain import explain
from gpututor.explain.compare import Comparison
from gpututor.explain.report_json import document
from gpututor.ledger import Account
from tests.explain.written import JobTrace

POINTS = 0.1  # percentage points
# What each trace is known for (its description), as the causes that its largest findings must be of.
KNOWN_FOR = {
    "v100-resnet50-workers0": {"waiting_for_input"},
    "v100-resnet50-autograd-workers0": {"waiting_for_input"},
    "rtx2080ti-resnet": {"waiting_for_input"},
    "v100-resnet50-workers4": {"launch_bound"},
    "v100-dlrm-rank0": {"exposed_communication", "launch_bound"},
    "v100-dlrm-rank1": {"exposed_communication"},
    "a100-ddp-control": {"exposed_communication"},
    "mi300-act-checkpoint": {"exposed_communication"},
    "v100-ns-healthy": {"none_found"},
    "mi300-graph-decode": {"none_found"},
    "h100-bert-small": {"launch_bound"},
    "mi300-bert-small": {"launch_bound"},
    "h100-timesformer": {"launch_bound"},
    "mi250-minitoy": {"launch_bound"},
    "h100-overlap": {"cannot_tell"},
    "a100-triton": {"cannot_tell"},
    "a100-event-sync": {"cannot_tell"},
}


@pytest.fixture(scope="module")
def get(shared):
    @cache
    def made(name):
        return explain(shared / "traces" / f"{name}.json.gz")

    return made


@pytest.fixture(scope="module")
def manifest(shared):
    return json.loads((shared / "traces" / "manifest.json").read_text(encoding="utf-8"))


def readable(manifest):
    return {name.removesuffix(".json.gz"): one["reference"] for name, one in manifest.items() if one["reference"]}


def test_idle_and_communication_of_every_trace_are_the_published_ones(get, manifest):
    for name, reference in readable(manifest).items():
        span = get(name).span
        if reference["span_us"] < 1:
            continue
        assert 100 * span.idle_share == pytest.approx(reference["idle_pct"], abs=POINTS), name
        talking_pct = 100 * reference["comm_us"] / reference["span_us"]
        assert 100 * span.communication_share == pytest.approx(talking_pct, abs=POINTS), name


def test_busy_and_loader_shares_of_marked_steps_are_the_published_ones(get, manifest):
    marked = {name: each for name, each in readable(manifest).items() if "step_busy_pct" in each}
    for name, reference in marked.items():
        steps = get(name).steps
        assert 100 * steps.busy_share == pytest.approx(reference["step_busy_pct"], abs=POINTS), name
        assert 100 * steps.loader_idle_share == pytest.approx(reference["idle_in_dataloader_pct"], abs=POINTS), name
    assert len(marked) == 12


def test_loader_shares_of_traces_without_marks_are_the_published_ones_over_the_span(get, manifest):
    unmarked = {n: each for n, each in readable(manifest).items() if "idle_in_dataloader_pct_of_span" in each}
    for name, reference in unmarked.items():
        expected = reference["idle_in_dataloader_pct_of_span"]
        assert 100 * get(name).span.loader_idle_share == pytest.approx(expected, abs=POINTS), name
    assert len(unmarked) == 2


def test_accounts_of_every_window_add_up_to_all_of_it(get, manifest):
    for name in readable(manifest):
        for window in document(get(name))["windows"].values():
            assert window is None or sum(window["accounts"].values()) == pytest.approx(1, abs=1e-9), name


@pytest.mark.parametrize("name", KNOWN_FOR)
def test_the_verdict_is_what_the_trace_is_known_for(get, name):
    found = get(name).findings
    largest = next((f for f in found if f.share is not None), found[0])
    told = largest.cause.name.lower() if "cannot_tell" not in KNOWN_FOR[name] else found[0].cause.name.lower()

    assert told in KNOWN_FOR[name]


def test_where_only_the_gpu_was_recorded_no_cause_of_its_idle_time_is_named(get):
    found = get("mi210-gpu-only").findings

    assert any(f.cause.name == "CANNOT_TELL" and f.account is Account.UNKNOWN_IDLE for f in found)
    assert not any(f.cause.name in ("LAUNCH_BOUND", "WAITING_FOR_INPUT") for f in found)


def test_two_windows_that_disagree_say_so(get):
    assert "41 % busy" in get("h100-timesformer").disagreement.replace("\u00a0", " ")


def test_what_was_said_of_the_loader_came_true_within_15_percent(get):
    before, after = get("v100-resnet50-workers0"), get("v100-resnet50-workers4")
    ((finding, expected_ns),) = Comparison(before, after).gone()

    assert finding.account is Account.WAITING_FOR_INPUT
    assert expected_ns == pytest.approx(after.typical.step_ns, rel=0.15)
    assert finding.gain.to_ns == pytest.approx(after.typical.step_ns, rel=0.15)


# --- made up --------------------------------------------------------------------------------------------------------


def test_steps_are_found_by_the_optimizers_marks():
    one = explain(JobTrace(n_steps=6, optimizer_marks=True).events)

    assert one.how == "each ends with its optimizer's step"
    assert one.window.ledger.n_steps == 5
    assert one.typical.step_ns == 1_000_000


def test_steps_are_found_by_kernels_that_come_again():
    one = explain(JobTrace(n_steps=6).events)

    assert one.how == "found by kernels that come again in the same order"
    assert one.typical.step_ns == 1_000_000


def test_without_marks_or_repeats_there_are_none_and_it_is_said():
    events = [e | {"name": f"k{i}"} for i, e in enumerate(JobTrace(n_steps=6).events)]
    one = explain(events)

    assert one.window.ledger.n_steps == 0
    assert one.how.startswith("none")


def test_a_typical_step_is_not_stretched_by_a_long_first_one():
    one = explain(JobTrace(n_steps=7, optimizer_marks=True, first_late_us=5000).events)

    assert one.typical.longest_ns == 6_000_000
    assert one.typical.step_ns == 1_000_000


def test_the_gpu_with_the_most_kernels_is_explained_and_another_on_request():
    events = [*JobTrace(n_steps=6).events, *JobTrace(n_steps=3, device=1).events]

    assert (explain(events).device, explain(events, device=1).device) == (0, 1)
    assert explain(events, device=1).n_devices == 2


def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(TimelineError, match="GPU 3 was asked for"):
        explain(JobTrace(n_steps=6).events, device=3)


def test_kernel_time_by_class_is_counted():
    one = explain(JobTrace(n_steps=6, optimizer_marks=True).events)

    # a step has a gemm of 100 µs, one of 60, an elementwise one of 40 and a reduction of 20
    assert {name: ns // 5000 for name, ns in one.kernel_classes().items()} == {
        "gemm": 160,
        "elementwise": 40,
        "reduction": 20,
    }


def test_tensor_cores_are_unknown_where_names_do_not_say():
    one = explain(JobTrace(n_steps=6, optimizer_marks=True).events)

    assert {where: ns // 5000 for where, ns in one.tensor_core_ns().items()} == {"on": 100, "off": 0, "unknown": 60}
