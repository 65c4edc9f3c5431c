"""A loop cut into steps and parts, on a device whose two clocks we move."""

from __future__ import annotations

import pytest

from gpututor.errors import NoSteps
from gpututor.ledger import Account
from gpututor.measure.loop import Run
from gpututor.measure.marks import Marks
from gpututor.measure.parts import Part
from gpututor.timeline import Activity
from tests.measure.fake_device import MS, FakeDevice


def batches(device: FakeDevice, n: int, wait_ms: int):
    """A loader that takes `wait_ms` for each batch."""
    for k in range(n):
        device.think(wait_ms)
        yield k


def run_on(device: FakeDevice, **wishes) -> Run:
    return Run(device.as_device(), **{"warmup": 0, "history": False, "no_sampler": "none", **wishes})


def split(device: FakeDevice, n: int = 3, wait_ms: int = 2, warmup: int = 0, body=None):
    """The result of a loop whose step is `body(run)`."""
    with run_on(device, warmup=warmup) as run:
        for _ in run.steps(batches(device, n, wait_ms)):
            (body or (lambda run: marked_step(device, run)))(run)
    return run.result


def marked_step(device: FakeDevice, run: Run) -> None:
    """On the GPU 3 ms forward, 6 ms backward, 1 ms optimizer, waited for; 2 ms of something else."""
    with run.forward():
        device.launch(3)
        device.synchronize()
    with run.backward():
        device.launch(6)
        device.synchronize()
    with run.optimizer():
        device.launch(1)
        device.synchronize()
    device.think(2)


def test_parts_are_as_long_as_what_happened_in_them():
    found = split(FakeDevice())

    expected = {Part.INPUT: 2, Part.FORWARD: 3, Part.BACKWARD: 6, Part.OPTIMIZER: 1, Part.REST: 2}
    assert {part: found.part_ns(part) / MS for part in expected} == expected


def test_parts_add_up_to_the_step():
    found = split(FakeDevice())

    assert sum(found.part_ns(part) for part in Part) == found.mean_step_ns == 14 * MS


def test_an_input_wait_under_queued_work_costs_nothing_on_the_gpu():
    device = FakeDevice()

    def body(run):  # 10 ms of work in 1 ms of the host's time; the next batch takes 2 ms meanwhile
        with run.forward():
            device.launch(10, host_ms=1)

    found = split(device, n=4, wait_ms=2, body=body)

    assert [step.on_gpu_ns(Part.INPUT) // MS for step in found.steps] == [2, 0, 0, 0]
    assert [step.on_host_ns(Part.INPUT) // MS for step in found.steps] == [2, 2, 2, 2]


def test_only_the_exposed_part_of_an_input_wait_is_charged():
    device = FakeDevice()

    def body(run):  # 10 ms of work are queued when the next batch begins to take 13
        with run.forward():
            device.launch(10)

    found = split(device, n=3, wait_ms=13, body=body)

    assert [step.on_gpu_ns(Part.INPUT) // MS for step in found.steps] == [13, 3, 3]
    assert found.ledger.charged_ns[Account.WAITING_FOR_INPUT] == (13 + 3 + 3) * MS


def test_warm_up_steps_are_left_out():
    found = split(FakeDevice(), n=5, warmup=2)

    assert (len(found.steps), found.n_left_out) == (3, 2)


def test_both_clocks_count_from_one_instant_after_the_warm_up():
    device = FakeDevice()

    def body(run):
        with run.forward():
            device.launch(50)

    found = split(device, n=4, warmup=2, body=body)

    assert found.steps[0].gpu_ns[0] == found.steps[0].host_ns[0]


def test_a_copy_asked_for_is_the_copy_of_the_step():
    device = FakeDevice()

    class Batch:
        def to(self, where, non_blocking):
            device.launch(4)
            device.synchronize()
            return (where, non_blocking)

    with run_on(device) as run:
        seen = list(run.steps([Batch(), Batch()], to="cuda"))

    assert seen == [("cuda", True)] * 2
    assert run.result.part_ns(Part.COPY) == 4 * MS


def test_a_pause_inside_a_step_has_its_own_account():
    device = FakeDevice()

    def body(run):
        marked_step(device, run)
        with run.pause():
            device.think(7)

    found = split(device, n=2, body=body)

    assert found.ledger.charged_ns[Account.PAUSE] == 2 * 7 * MS


def test_time_between_two_loops_is_a_pause_and_in_no_step():
    device = FakeDevice()
    with run_on(device) as run:
        for _ in range(2):
            for _ in run.steps(batches(device, 2, 1)):
                marked_step(device, run)
            device.think(30)

    assert {step.duration_ns for step in run.result.steps} == {13 * MS}
    assert run.result.ledger.charged_ns[Account.PAUSE] == 30 * MS


def test_a_step_that_is_left_by_a_break_counts_for_nothing():
    device = FakeDevice()
    with run_on(device) as run:
        for k in run.steps(batches(device, 9, 1)):
            if k == 3:
                break
            marked_step(device, run)

    assert len(run.result.steps) == 3


def test_a_loop_that_raises_keeps_the_steps_before_and_says_so():
    device = FakeDevice()
    run = run_on(device)

    def loop():
        with run:
            for k in run.steps(batches(device, 9, 1)):
                marked_step(device, run)
                if k == 2:
                    raise IndexError("batch 2")

    with pytest.raises(IndexError, match="batch 2"):
        loop()
    assert len(run.result.steps) == 2
    assert run.result.reasons["the rest of the loop"] == "it was ended by IndexError"


def test_an_error_of_the_device_after_the_loop_is_raised():
    device = FakeDevice()

    def fail(run):
        marked_step(device, run)
        device.launch(5)
        device.fails = RuntimeError("device-side assert")

    with pytest.raises(RuntimeError, match="device-side assert"):
        split(device, n=1, body=fail)


def test_an_error_of_the_loop_is_not_hidden_by_one_of_the_device():
    device = FakeDevice()

    def fail(run):
        device.launch(5)
        device.fails = RuntimeError("device-side assert")
        raise IndexError("mine")

    with pytest.raises(IndexError, match="mine"):
        split(device, n=1, body=fail)


def test_a_loop_too_short_for_the_warm_up_has_no_result_and_says_why():
    device = FakeDevice()
    with run_on(device, warmup=3) as run:
        list(run.steps(batches(device, 2, 1)))

    with pytest.raises(NoSteps, match="had 2 whole steps, of which 3 are left out"):
        run.result  # noqa: B018


def test_what_is_inside_a_part_belongs_to_it():
    device = FakeDevice()

    def body(run):
        with run.optimizer():
            with run.backward():
                device.think(5)
            device.think(1)

    found = split(device, body=body)

    assert (found.part_ns(Part.OPTIMIZER), found.part_ns(Part.BACKWARD)) == (6 * MS, 0)


def test_what_comes_before_a_backward_is_forward_and_what_comes_after_is_rest():
    device = FakeDevice()

    def body(run):
        device.think(4)
        with run.backward():
            device.think(5)
        device.think(6)

    found = split(device, body=body)

    assert [found.part_ns(part) / MS for part in (Part.FORWARD, Part.BACKWARD, Part.REST)] == [4, 5, 6]


def test_each_backward_of_an_accumulating_step_has_its_forward_before_it():
    device = FakeDevice()

    def body(run):
        for _ in range(2):
            device.think(4)
            with run.backward():
                device.think(5)

    found = split(device, body=body)

    assert [found.part_ns(part) / MS for part in (Part.FORWARD, Part.BACKWARD)] == [8, 10]


def test_a_step_that_marks_its_forward_has_no_other():
    device = FakeDevice()

    def body(run):
        with run.forward():
            device.think(4)
        device.think(3)
        with run.backward():
            device.think(5)

    found = split(device, body=body)

    assert [found.part_ns(part) / MS for part in (Part.FORWARD, Part.REST)] == [4, 3]


def test_nothing_is_marked_while_a_graph_is_captured():
    device, capturing = FakeDevice(), [False]
    with Run(device.as_device(capturing=lambda: capturing[0]), warmup=0, history=False) as run:
        for _ in run.steps(range(2)):
            capturing[0] = True
            with run.backward():
                device.think(5)
            capturing[0] = False

    assert {step.parts for step in run.result.steps} == {(Part.INPUT, Part.FORWARD)}


def test_steps_are_resolved_as_the_gpu_reaches_them_without_waiting():
    device = FakeDevice()
    marks = Marks(device.as_device())

    for _ in range(100):
        marks.begin_step()
        marks.got_batch()
        device.launch(1, host_ms=1)

    assert len(marks.steps) >= 97
    assert device.n_syncs == 1  # before the first


def test_the_host_ahead_of_the_gpu_is_seen():
    device = FakeDevice()

    def body(run):
        with run.forward():
            device.launch(10, host_ms=1)

    found = split(device, n=3, wait_ms=0, body=body)

    assert [step.lead_ns // MS for step in found.steps] == [10, 19, 28]  # 11, 21, 31 reached; 1, 2, 3 set
    assert not any("ahead of the GPU" in note for note in found.notes)


def test_a_gpu_that_never_has_a_queue_is_said_to_wait_inside_a_part():
    found = split(FakeDevice())

    assert any("the GPU waits for launches" in note for note in found.notes)


def test_a_gpu_on_which_nothing_was_ever_put_is_asked_for():
    device = FakeDevice()
    device.peak_bytes = 0

    assert any("are model and batch there?" in note for note in split(device).notes)


def test_the_timeline_has_a_span_for_each_part_and_the_rest_has_none():
    timeline = split(FakeDevice(), n=1).timeline

    assert [s.name for s in timeline.on(Activity.KERNEL)] == ["forward", "backward", "optimizer"]
    assert "rest" not in {s.name for s in timeline.spans}
    assert timeline.duration_ns == 14 * MS


def test_the_ledger_says_busy_only_where_a_part_of_the_model_was():
    ledger = split(FakeDevice(), n=2).ledger

    assert ledger.busy_ns == 2 * 10 * MS
    assert ledger.charged_ns[Account.WAITING_FOR_INPUT] == 2 * 2 * MS


def test_money_follows_from_the_mean_step():
    device = FakeDevice()
    with run_on(device, usd_per_hour=3.6) as run:
        for _ in run.steps(batches(device, 2, 2)):
            device.think(98)

    assert run.result.usd_per_1000_steps == pytest.approx(1000 * 0.1 / 3600 * 3.6)


def test_marking_reports_its_own_cost():
    ticks = iter(range(0, 10_000, 7))
    marks = Marks(FakeDevice().as_device(), own_clock_ns=lambda: next(ticks))

    marks.begin_step()
    marks.got_batch()

    assert (marks.n_marks, marks.own_ns) == (2, 14)
