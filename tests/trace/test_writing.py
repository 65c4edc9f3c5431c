"""A timeline written as a trace and read again: the same spans, times, work, steps and label."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace

import pytest

from gpututor.ledger import Account, charge
from gpututor.lookup import machine_named
from gpututor.model.kernels import Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, CopyCall, EndRun, HostWork, Sync, Tape, TapeOp
from gpututor.timeline import Activity, Origin
from gpututor.trace import read
from gpututor.trace.writing import FIRST_CORRELATION, HOST_PID, write

KERNEL = Stream("elementwise", 8_000_000, 1_000_000, 1_000_000, elements_per_block=512)
STEP = (
    BeginStep(4),
    HostWork(Activity.INPUT, "next batch", 300_001),
    CopyCall("batch to the card", True, 1_000_000, pinned=False, blocking=True),
    *[TapeOp("aten.add.Tensor", HostKind.LIGHT, "forward", (KERNEL,))] * 20,
    HostWork(Activity.PAUSE, "checkpoint", 50_007),
    Sync("item"),
)


@pytest.fixture(scope="module")
def timeline():
    entries = [each for _ in range(3) for each in STEP]
    tape = Tape("a made-up loop", [*entries, Sync("synchronize"), EndRun()], [2.5, 2.25, None])
    return tape.price(machine_named("p3.2xlarge"))


@pytest.fixture
def again(timeline, tmp_path):
    write(timeline, tmp_path / "trace.json.gz")
    return read(tmp_path / "trace.json.gz")


def number(launch, first):
    return None if launch is None else launch - first


def placed(timeline, first=0):
    """Spans as far as a trace can say them, whatever the order of lanes: kind of lane, times, launch, work."""
    return Counter(
        (
            timeline.lanes[s.lane].kind,
            s.activity,
            s.start_ns - timeline.window_ns[0],
            s.duration_ns,
            number(s.launch, first),
            s.work,
        )
        for s in timeline.spans
        if s.duration_ns
    )


def test_spans_come_back_with_times_links_and_work(timeline, again):
    assert placed(again, FIRST_CORRELATION) == placed(timeline)


def test_steps_come_back_with_samples_and_losses(timeline, again):
    begin, begin_again = timeline.window_ns[0], again.window_ns[0]

    assert [replace(s, start_ns=s.start_ns - begin, end_ns=s.end_ns - begin) for s in timeline.steps] == [
        replace(s, start_ns=s.start_ns - begin_again, end_ns=s.end_ns - begin_again) for s in again.steps
    ]


def test_what_was_simulated_says_so_after_reading_too(timeline, again):
    assert again.label == timeline.label
    assert again.label.origin is Origin.SIMULATED


def test_the_ledger_is_the_same(timeline, again):
    assert dict(charge(again).charged_ns) == dict(charge(timeline).charged_ns)
    assert charge(again).charged_ns[Account.WAITING_FOR_INPUT] > 0
    assert charge(again).mfu == charge(timeline).mfu


def test_equal_timelines_give_equal_bytes(timeline, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(timeline, tmp_path / name / "trace.json.gz")

    assert (tmp_path / "a" / "trace.json.gz").read_bytes() == (tmp_path / "b" / "trace.json.gz").read_bytes()


@pytest.fixture
def events(timeline, tmp_path):
    write(timeline, tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_every_kernel_has_its_launch_by_number_and_by_flow(events):
    kernels = {e["args"]["correlation"] for e in events if e.get("cat") == "kernel"}
    calls = {e["args"]["correlation"] for e in events if e.get("cat") == "cuda_runtime" and "correlation" in e["args"]}
    flows = {ph: {e["id"] for e in events if e["ph"] == ph} for ph in "sf"}

    assert kernels
    assert kernels <= calls
    assert kernels <= flows["s"] & flows["f"]


def test_steps_are_marked_as_torch_marks_them(events):
    assert [e["name"] for e in events if e["name"].startswith("ProfilerStep#")] == [
        f"ProfilerStep#{k}" for k in range(3)
    ]


def test_a_host_process_is_no_gpu(events):
    assert {e["pid"] for e in events if e.get("cat") in ("cpu_op", "cuda_runtime", "user_annotation")} == {HOST_PID}


def test_it_is_packed_where_the_name_says_so(timeline, tmp_path):
    write(timeline, tmp_path / "t.json.gz")
    write(timeline, tmp_path / "t.json")

    assert json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["schemaVersion"] == 1
    assert (tmp_path / "t.json").read_bytes().startswith(b"{")


@pytest.mark.parametrize("damage", ["window_ns", "label", "steps"])
def test_a_damaged_head_of_ours_makes_it_a_recording_like_others(timeline, tmp_path, damage):
    path = tmp_path / "trace.json"
    write(timeline, path)
    text = json.loads(path.read_text())
    text["gpututor"][damage] = 7
    path.write_text(json.dumps(text))

    assert read(path).label.origin is Origin.RECORDED
