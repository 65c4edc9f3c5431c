"""What lesson 7's page says of a run, whichever way its comparisons came out, and its figures."""

from __future__ import annotations

import re

import pytest

from gpututor.lookup import machine_named
from gpututor.model.tape import BeginStep, EndRun, HostWork, Tape
from gpututor.page.lessons.in_memory import Found, found_in, thread_rows
from gpututor.page.rows import rows_to_batch
from gpututor.page.step_bars import step_bars
from gpututor.page.sweep import Point
from gpututor.page.threads import threads_table, verdict
from gpututor.references import reference
from gpututor.replay import play
from gpututor.timeline import Activity

MS = 1_000_000


def point(key: str, wait_ms: float, rest_ms: float = 1.0) -> Point:
    entries = [
        BeginStep(256),
        HostWork(Activity.INPUT, "next batch", round(wait_ms * MS)),
        HostWork(Activity.PYTHON, "Python", round(rest_ms * MS)),
        EndRun(),
    ]
    played = play(Tape(key, entries, [0.5], clock="paced"), machine_named("V100"))
    return Point(key, key.capitalize(), None, 256, played, (0.75, 0.5), 1)


def found(loops: dict[str, float] | None = None, noise: float | None = 1.0, **wait_ms: float) -> Found:
    """A run with these waits, in milliseconds, by key; a step is one millisecond longer."""
    points = {name.replace("_", "-"): point(name.replace("_", "-"), ms) for name, ms in wait_ms.items()}
    return Found(points, loops or {}, noise)


def workers(rows: tuple[float, float, float], batch: tuple[float, float, float]) -> Found:
    named = {f"rows_{w}": ms for w, ms in enumerate(rows)} | {f"batch_{w}": ms for w, ms in enumerate(batch)}
    return found(**named)


SLOWER = workers(rows=(0.6, 1.2, 1.5), batch=(0.1, 1.1, 1.2))
FASTER = workers(rows=(9.0, 4.0, 2.0), batch=(0.1, 1.1, 1.2))


# --- derived numbers -------------------------------------------------------------------------------------------------


def test_a_row_costs_the_difference_of_the_two_waits():
    assert SLOWER.row_ns == pytest.approx(0.5 * MS / 256)


def test_handing_over_costs_what_a_worker_adds_to_a_step_without_work():
    assert SLOWER.hand_over_ns == pytest.approx(1.0 * MS)


def test_a_variant_that_did_not_run_is_missed():
    assert not SLOWER.has("rows-0", "slice")


# --- sentences -------------------------------------------------------------------------------------------------------


def test_workers_that_cost_more_than_they_take_over_are_said_to_lose():
    assert "a worker can't pay" in SLOWER.break_even_said
    assert "512 such rows a batch break even, so with 256" in SLOWER.break_even_said  # 1 ms at 0.5 ms for 256


def test_workers_that_take_over_more_than_they_cost_are_said_to_win():
    assert "a worker should pay" in FASTER.break_even_said
    assert "row by row the step with one took 5.00\u00a0ms, without 10.0\u00a0ms." in FASTER.break_even_said


def test_a_worker_that_costs_nothing_visible_is_no_division_by_zero():
    same = workers(rows=(0.6, 0.6, 0.6), batch=(0.6, 0.6, 0.6))

    assert "next to nothing" in same.break_even_said
    assert "costs nothing that could be seen" in same.row_said


def test_both_ways_of_asking_are_compared_and_the_shortest_is_named():
    assert "row by row is 1.6 times as long, and a batch at once is 2.0 times as long" in SLOWER.workers_said
    assert "batch-0" in SLOWER.workers_said


def test_a_quiet_run_says_nothing_of_noise():
    assert found(noise=1.2, rows_0=1.0).noise == ""


def test_a_disturbed_run_says_by_how_much():
    assert "2.4 times" in found(noise=2.4, rows_0=1.0).noise


def test_losses_are_only_called_the_same_where_they_are():
    differing = dict(SLOWER.points)
    differing["rows-1"] = point("rows-1", 1.0)
    object.__setattr__(differing["rows-1"], "losses", (0.75, 0.51))

    assert "to the last digit" in SLOWER.same_losses("workers")
    assert "differ" in Found(differing, {}, None).same_losses("workers")


def test_the_noise_is_that_of_the_middle_variant():
    told = [{"mean_step_ns": ratio, "step_ns": 1.0} for ratio in (1.0, 1.1, 9.0)]

    assert found_in([], {"points": told}).typical_noise == 1.1


# --- threads ---------------------------------------------------------------------------------------------------------


def test_each_thread_is_there_even_where_nothing_was_run():
    assert {ours for _, ours in thread_rows(found(rows_0=1.0))} == {None}


def test_a_threads_ratio_is_that_of_its_two_loops():
    ratios = {theirs.name: ours for theirs, ours in thread_rows(found({"loader": 0.4, "slices": 0.002}, rows_0=1.0))}

    assert ratios["loader to slices"] == pytest.approx(200)


@pytest.mark.parametrize(
    ("record", "theirs"),
    [
        ("by row to by batch, no workers", 1.39 / 0.09),
        ("one worker to none", 6.01 / 1.39),
        ("two workers to none", 4.71 / 1.39),
        ("loader to slices", 4.5 / 0.014),
        ("columns to rows", 1.607e6 / 1.083e5),
        ("tokens in the loop", 1 / 0.3),
        ("list to array", 4.814 / 0.035),
        ("small files to one", 3000 / 2000),
    ],
)
def test_what_they_saw_is_the_ratio_of_the_threads_numbers(record, theirs):
    assert reference(record).value == pytest.approx(theirs, rel=0.01)


def test_the_opposite_of_a_thread_is_said():
    assert verdict(4.3, 0.9) == "not so here"
    assert "not so here" in threads_table([(reference("one worker to none"), 0.9)])


# --- figures ---------------------------------------------------------------------------------------------------------


def test_a_bar_is_as_long_as_its_step_on_the_scale_of_the_longest():
    table = step_bars([point("a", 1.0, 1.0), point("b", 3.0, 1.0)], lambda p: "")
    widths = [sum(map(float, re.findall(r"width:([\d.]+)%", line))) for line in table.split("<tr>")[2:]]

    assert widths == pytest.approx([50, 100])


def test_a_bar_says_its_parts_to_a_screen_reader():
    assert "Waiting for input 3.00\u00a0ms" in step_bars([point("b", 3.0, 1.0)], lambda p: "")


def test_a_variant_that_could_not_run_has_no_bar():
    missing = Point("c", "Gone", None, 256, None, (), None, "too large")

    assert "Gone" not in step_bars([point("a", 1.0), missing], lambda p: "")


def test_the_picture_has_a_square_for_each_row_of_a_batch():
    assert rows_to_batch("256 rows", "one batch").count("<rect") == 256 + 1
