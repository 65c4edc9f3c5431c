"""A rank that comes last to collectives: how long the others wait for it, by counting."""

from __future__ import annotations

import pytest

from gpututor import timeline_file
from gpututor.causes import Cause
from gpututor.explain import explain
from gpututor.explain.late import awaited, collectives
from gpututor.explain.ranks import across
from gpututor.timeline import Activity, KernelWork
from gpututor.trace import read
from tests.draw import draw
from tests.explain.written import JobTrace


def waits(own, other, *, one_clock=True):
    """The waits of a GPU of which the collectives are drawn, one character a microsecond, beside those of another."""
    ranks = [collectives(draw(gpu=row), None) for row in (own, other)]
    return awaited(ranks, ["own", "other"], 0, one_clock=one_clock)


def test_the_first_to_come_waits_until_the_last_one_starts():
    assert waits("MMMMMM..", "...MMM..").intervals_ns == ((0, 3000),)


def test_the_last_to_come_waits_for_nobody():
    found = waits("...MMM..", "MMMMMM..")

    assert found.intervals_ns == ((3000, 3000),)
    assert found.last == (("own", 1),)


def test_with_clocks_of_their_own_the_shortest_is_the_last():
    assert waits("MMMMMM..", "MMM.....", one_clock=False).intervals_ns == ((0, 3000),)


def test_collectives_are_matched_in_their_order():
    assert waits("MMM..MM.", ".MM..MM.").intervals_ns == ((0, 1000), (5000, 5000))


def test_where_one_rank_has_more_collectives_nothing_is_said():
    assert waits("MMM..MM.", ".MM.....") is None


def test_on_one_clock_what_does_not_run_at_the_same_time_is_no_partner():
    assert waits("MMM.....", ".....MMM") is None


def test_one_rank_alone_waits_for_nobody():
    assert awaited([collectives(draw(gpu="MM.."), None)], ["own"], 0, one_clock=True) is None


def test_without_collectives_nothing_is_said():
    assert waits("####", "####") is None


def in_group(row, group):
    """Collectives of a drawn GPU, as if they said this process group."""
    return {(name, group): spans for (name, _), spans in collectives(draw(gpu=row), None).items()}


def test_a_rank_waits_for_those_of_its_own_process_group_only():
    """Of four ranks two and two talk, in collectives of one name, as many each; the last one is in the other group."""
    rows = ((".MMMMMMM", "a"), ("..MMMMMM", "a"), (".MMMMMMM", "b"), ("......MM", "b"))
    ranks = [in_group(row, group) for row, group in rows]

    found = awaited(ranks, ["0", "1", "2", "3"], 0, one_clock=True)

    assert found.intervals_ns == ((1000, 2000),)
    assert found.last == (("1", 1),)
    assert awaited(ranks, ["0", "1", "2", "3"], 2, one_clock=True).intervals_ns == ((1000, 6000),)


def test_a_kernel_that_names_its_collective_is_one_whatever_it_is_called():
    """As in traces of libraries of other names; the group is the one that the record tells."""
    talking = {"Collective name": "allreduce", "Process Group Name": "3", "Process Group Ranks": "[0, 2]"}
    kernel = {"ph": "X", "cat": "kernel", "name": "ours", "ts": 5, "dur": 9, "pid": 0, "tid": 7}

    (one,) = read([kernel | {"args": {"device": 0, "stream": 7, **talking}}]).spans

    assert one.activity is Activity.COLLECTIVE
    assert one.work.group == "3 [0, 2]"


def test_a_saved_timeline_keeps_the_group(tmp_path):
    timeline = draw(gpu="##", work=KernelWork(group="3 [0, 2]"))
    timeline_file.save(timeline, tmp_path / "t.json")

    assert timeline_file.load(tmp_path / "t.json") == timeline


def job(device, begins_us, ends_us=960):
    """Six steps of 1,000 µs with a collective that begins so late in each; the last kernel before it ends at 625."""
    events = JobTrace(n_steps=6, device=device, optimizer_marks=device == 0).events
    for k in range(6):
        at, long = 1000 * k + begins_us, ends_us - begins_us
        events.append(JobTrace(1, device)._on_gpu("ncclDevKernel_AllReduce", at, long, 20, 0))
    return events


def shares(one):
    return {f.cause: f.share for f in one.findings}


def test_in_one_trace_the_gpu_that_comes_early_waits_for_the_other():
    found = shares(explain([*job(0, 660), *job(1, 860)], device=0))

    # 200 of 1,000 µs until the other one comes, 100 of exchange
    assert found[Cause.STRAGGLING_RANK] == pytest.approx(0.2)
    assert found[Cause.EXPOSED_COMMUNICATION] == pytest.approx(0.1)


def test_the_gpu_that_comes_last_only_exchanges():
    events = [*job(0, 860), *job(1, 660)]
    found = shares(explain(events, device=0))

    assert Cause.STRAGGLING_RANK not in found
    assert found[Cause.EXPOSED_COMMUNICATION] == pytest.approx(0.1)


def test_a_wait_under_a_kernel_costs_nothing():
    found = shares(explain([*job(0, 420), *job(1, 620)], device=0))

    # the wait is from 420 to 620; kernels run until 445 and from 605
    assert found[Cause.STRAGGLING_RANK] == pytest.approx(0.16)


def test_in_a_folder_each_trace_may_have_a_clock_of_its_own():
    later = [e | {"ts": e["ts"] + 12_345} for e in job(0, 860)]
    first, last = across([explain(job(0, 660), what="rank0"), explain(later, what="rank1")]).explained

    assert shares(first)[Cause.STRAGGLING_RANK] == pytest.approx(0.2)
    assert Cause.STRAGGLING_RANK not in shares(last)


def test_the_last_rank_is_told_by_name():
    first, _ = across([explain(job(0, 660), what="rank0"), explain(job(0, 860), what="rank1")]).explained
    told = next(f for f in first.findings if f.cause is Cause.STRAGGLING_RANK)

    assert "rank1 comes last in 6 of them" in told.sentence
    assert told["n_matched"] == 6
    assert told.lesson == 16


def test_rank_1_of_the_recorded_two_waits_for_rank_0(shared):
    files = [shared / "traces" / f"v100-dlrm-rank{k}.json.gz" for k in (0, 1)]
    first, second = across([explain(file) for file in files]).explained
    told = next(f for f in second.findings if f.cause is Cause.STRAGGLING_RANK)

    # by the files' own clocks the first collective starts at …424,306 µs on rank 1 and at …429,795 on rank 0
    assert told["idle_ns"] == pytest.approx(5_489_000, rel=0.05)
    assert "rank0.json.gz comes last" in told.sentence
    assert Cause.STRAGGLING_RANK not in shares(first)
    assert sum(f.share or 0 for f in second.findings) <= 1
