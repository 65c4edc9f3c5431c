"""What the page of lesson 9 says: its sentences follow the numbers, whichever way a machine turns them."""

from __future__ import annotations

import re

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.experiments.answers import LENGTHS, MATCHED, WATCHED, at_length
from gpututor.experiments.stopwatch import Stopwatch
from gpututor.page.kept import Kept
from gpututor.page.lessons.answer_tables import (
    WAYS,
    after_first_answer,
    agree,
    answers_elsewhere,
    habits_table,
    lines_table,
    loop_picture,
    matchings_table,
)
from gpututor.page.lessons.answers import Answers, answers_of
from gpututor.references import reference
from gpututor.timeline import Activity, Lane, LaneKind, Span, Timeline
from tests.draw import draw

MS = 1e6


def watch(step: float, *, batch: float = 0.1, read: float = 0.0, card: float = 7.0, waits: float = 0.0) -> Stopwatch:
    """A step under the stopwatch, in milliseconds."""
    return Stopwatch(step * MS, batch * MS, read * MS, 0.003 * MS, card * MS, waits)


def found(**watched: Stopwatch) -> Answers:
    keyed = {key.replace("_", "-"): seen for key, seen in watched.items()}
    names = {key: f"the way of {key}" for key in keyed}
    return Answers(machine(DEFAULT_MACHINE), keyed, names, dict.fromkeys(keyed, (2.0, 1.5)))


def lengths(saved: dict[int, float]) -> Answers:
    """A step of 10 ms with two readings at each length, which is shorter by `saved` without them."""
    both = {at_length("both", n): watch(10, read=4, waits=2) for n in LENGTHS}
    silent = {at_length("silent", n): watch(10 - saved.get(n, 0.1)) for n in LENGTHS}
    return Answers(machine(DEFAULT_MACHINE), both | silent, {}, {})


def texts(table: str) -> list[str]:
    return [re.sub(r"<[^>]+>", "|", row) for row in table.split("<tr")[1:]]


def test_a_long_wait_that_saves_little_is_the_cards_work():
    assert "the card worked" in found(item=watch(10, read=4), silent=watch(9.8)).stood_said


def test_a_wait_that_is_hardly_there_is_the_hosts_slowness():
    assert "hardly stands there" in found(item=watch(10, read=0.2), silent=watch(9.9)).stood_said


def test_a_wait_that_could_be_saved_was_idle_for_both():
    assert "idle as well" in found(item=watch(10, read=4), silent=watch(6.5)).stood_said


def test_the_wait_that_moved_is_told_with_both_lines():
    told = found(plain_item=watch(10, batch=0.1, read=4), plain=watch(9.9, batch=3.96)).moved_said

    assert "1.0\u00a0% to 40\u00a0%" in told
    assert "10.0\u00a0ms to 9.90\u00a0ms" in told


def test_where_nothing_waits_nothing_moves():
    told = found(plain_item=watch(10, batch=0.1, read=0.2), plain=watch(9.9, batch=0.3)).moved_said

    assert "hardly shows" in told


def test_the_peak_is_where_most_is_saved():
    answers = lengths({48: 2.0})

    assert answers.peak == 48
    assert answers.peak_said.startswith("Most is saved with 48 characters, 20\u00a0% of the step")


def test_the_lines_of_the_chart_are_shares_of_the_step_with_readings():
    lines = lengths({48: 2.0}).length_lines()

    assert dict(lines["on the stopwatch"]) == dict.fromkeys(LENGTHS, 0.4)
    assert dict(lines["saved"])[48] == pytest.approx(0.2)


def test_a_place_that_costs_no_more_is_said_to():
    answers = found(silent=watch(10), item=watch(10.2), bar=watch(10.21))

    assert "the same" in answers.place_said


def test_a_run_that_got_half_way_has_what_it_has():
    answers = found(silent=watch(10), item=watch(10.2))

    assert not answers.has("both")
    assert not answers.has_lengths
    assert answers.threads() == []
    assert len(texts(habits_table(answers))) == 3  # the head and two lines


def test_without_a_run_there_is_nothing():
    assert answers_of(Kept(), machine(DEFAULT_MACHINE)).watched == {}


def test_a_habit_is_told_with_what_it_costs():
    answers = found(silent=watch(10), item=watch(10.5, waits=1))

    assert "10.5\u00a0ms (+5.0\u00a0%)" in texts(habits_table(answers))[2]


def test_a_detector_is_told_with_how_many_times_as_long_it_takes():
    answers = found(one_by_one=watch(30), one_transfer=watch(20), together=watch(2))

    assert "30.0\u00a0ms (15 times)" in texts(matchings_table(answers))[1]
    assert "save 10.0\u00a0ms of 30.0\u00a0ms" in answers.matched_said


def test_the_bars_of_a_loop_fill_its_step():
    answers = found(item=watch(10, batch=1, read=4), later=watch(5, batch=1))
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", lines_table(answers))]

    assert widths == [10.0, 50.0, 40.0, 10.0, 40.0]  # batch, launching, reading; then a loop of half the length


@pytest.mark.parametrize(
    ("name", "ours", "said"),
    [
        ("one of two readings moved", 0.05, "so here too"),
        ("one of two readings moved", 0.015, "the same way, less"),
        ("one of two readings moved", 0.2, "the same way, more"),
        ("one of two readings moved", 0.001, "not so here"),
        ("the wait that moved", 0.99, "so here too"),
        ("the wait that moved", 0.8, "not so here"),
        ("tables one by one", 20.0, "so here too"),
        ("tables one by one", 1.0, "not so here"),
    ],
)
def test_a_thread_is_met_or_not(name, ours, said):
    assert agree(reference(name), ours) == said


def test_the_threads_are_told_with_their_numbers_and_ours():
    answers = found(both=watch(10.7, waits=2), item=watch(10), sum=watch(9.8))
    fvdb, lan = texts(answers_elsewhere(answers))[1:]

    assert "5.0\u00a0% to 7.0\u00a0%" in fvdb
    assert "7.0\u00a0%" in fvdb
    assert "2.0\u00a0%" in lan


def test_the_ways_are_the_jobs_habits():
    from gpututor.jobs import habits

    assert tuple(habit.key for habit in habits.WAYS) == WAYS
    assert set(WATCHED) <= set(WAYS)
    assert len(MATCHED) == 3


def test_the_first_answer_is_found_in_a_step():
    spans = (Span(0, Activity.SYNC, "item", 2_000_000, 3_000_000), Span(0, Activity.SYNC, "item", 5_000_000, 6_000_000))
    step = Timeline((Lane(LaneKind.HOST, "main"),), spans, (0, 8_000_000), draw(gpu="#").label)
    lo, hi = after_first_answer(step)["after the first answer"]

    assert lo < 3_000_000 < hi < 5_000_000


def test_a_step_without_a_wait_has_no_such_view():
    step = Timeline((Lane(LaneKind.HOST, "main"),), (), (0, 8_000_000), draw(gpu="#").label)

    assert after_first_answer(step) == {}


def test_a_loops_picture_asks_about_its_last_line():
    drawn = loop_picture(["a()", "b()"])

    assert drawn.count("?</b>") == 1
    assert "b() , costs" in drawn or "b(), costs" in drawn
