"""Lesson 18's page: nights against what was planted, what a reader marks, sentences on any card, the watched run."""

from __future__ import annotations

import json
from dataclasses import replace

import marimo as mo
import pytest

from gpututor import readers
from gpututor.exercises.ex18 import WHY
from gpututor.experiments.nights import N_NIGHTS, Cause
from gpututor.experiments.watching_over_time import run
from gpututor.lookup import machine_named
from gpututor.page import board_panel
from gpututor.page.board_panel import BoardPanel, Opened
from gpututor.page.kept import Kept, kept_tapes
from gpututor.page.lessons import nights_cost, nights_figures
from gpututor.page.lessons.nights import as_ranges, night_played, numbers_in, priced, rented
from gpututor.page.lessons.nights_figures import Marked
from gpututor.page.lessons.nights_next import why_case
from gpututor.page.lessons.watched import CARD, PROCESSOR, Watched, events_folder, watch_figure, watched_in
from gpututor.progress import Progress
from gpututor.results import StoredResult
from gpututor.watch.files import JsonLines
from gpututor.watch.meaning import Verdict
from gpututor.watch.source import GpuProcess
from tests.watch.made import BUSY_CPU, IDLE_CPU, reading, simulated

CARDS = ("p3.2xlarge", "T4", "H100-SXM")
NO_MARKS, SHOWN = Marked(""), Marked("", shown=True)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    data = run(Progress(results_dir=folder), seed=7, n_learned=2, watch_s=0)
    data = json.loads(json.dumps(data))
    return kept_tapes(StoredResult(folder, "done", "", {}, data, "", "2026-01-01T00:00:00+00:00", 1, 1), "done")


@pytest.fixture(scope="module", params=CARDS)
def found(kept, request):
    return priced(kept, machine_named(request.param))


def episode(found, cause):
    return next(each for each in found.episodes if each.cause is cause)


# --- against what was planted ----------------------------------------------------------------------------------------


def test_a_night_is_slower_where_its_sample_is_not_where_its_step_is(found):
    batch = episode(found, Cause.BATCH)

    assert found.step_share(batch) > 0.1
    assert not found.slower & frozenset(batch.numbers)


def test_a_night_by_chance_is_never_slower(found):
    assert not any(found.night(n).cause in (None, Cause.CHANCE) for n in found.slower)


def test_found_missed_and_false_are_all_that_is_called_or_slower(found):
    counted = found.counted(found.called)

    assert counted.found | counted.missed == found.slower
    assert counted.found | counted.false == found.called
    assert found.found_share == len(counted.found) / len(found.slower)


def test_who_marks_what_was_slower_misses_nothing(found):
    assert found.counted(found.slower).text.endswith("0 missed, 0 called slower that weren't")


def test_what_creeps_is_missed_on_the_questions_machine(kept):
    on_it = rented(kept)

    assert frozenset(episode(on_it, Cause.LOADER).numbers) & on_it.slower
    assert not frozenset(episode(on_it, Cause.LOADER).numbers) & on_it.called
    assert "nobody called it" in on_it.loader_said


def test_what_hides_behind_the_loader_is_told(found):
    last = episode(found, Cause.LOADER).last
    later = [n for each in found.episodes if each.first > last for n in each.numbers]

    assert bool(found.hidden_said) == bool(frozenset(later) & found.slower and not frozenset(later) & found.called)


def test_a_larger_batch_is_called_slower_and_is_not(found):
    assert frozenset(episode(found, Cause.BATCH).numbers) <= found.counted(found.called).false


def test_a_hot_card_is_told_by_what_it_did_on_this_card(found):
    one = episode(found, Cause.HEAT)

    assert ("the host sets the pace" in found.heat_said) == (found.longer_share(one.first) < 0.02)


def test_slower_nights_take_longer_than_usual_ones(found):
    assert found.lost_ns > 0
    assert found.night_ns(episode(found, Cause.DRIVER).first) > found.night_ns()


def test_a_run_that_was_stopped_too_early_has_no_nights(kept):
    few = priced(Kept({"usual": kept.tapes["usual"]}, result=kept.result), machine_named())

    assert (few.whole, few.found_share) == (False, None)


# --- what a reader types ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("9-11", {9, 10, 11}), ("9 to 11 and 40", {9, 10, 11, 40}), ("3,3; 4", {3, 4}), ("", set()), (" , ", set())],
)
def test_nights_can_be_typed_in_several_ways(text, numbers):
    assert numbers_in(text) == (frozenset(numbers), "")


@pytest.mark.parametrize("text", ["0", "41", "12-9", "9..11", "some", "-3", "9-99"])
def test_what_is_no_night_is_told(text):
    numbers, trouble = numbers_in(text)

    assert not numbers
    assert trouble


def test_numbers_are_written_as_they_can_be_read():
    assert numbers_in(as_ranges({1, 2, 3, 9, 12, 13}))[0] == {1, 2, 3, 9, 12, 13}


def test_nothing_is_told_before_a_reader_marked_or_asked(found, kept):
    html = nights_figures.verdict(found, NO_MARKS, kept).text

    assert "What was planted" not in html
    assert not NO_MARKS.revealed
    assert not Marked("none of them", shown=True).revealed
    assert Marked("3").revealed
    assert SHOWN.revealed


# --- figures ---------------------------------------------------------------------------------------------------------


def test_the_verdict_counts_the_readers_nights_and_the_librarys(found, kept):
    html = nights_figures.verdict(found, Marked("6-9"), kept).text

    assert "You marked 6 to 9" in html
    assert f"The library called {as_ranges(found.called)}" in html
    for cause in Cause:
        assert cause.value.capitalize() in html


def test_a_slip_of_the_pen_is_one_sentence(found, kept):
    assert "is no night" in nights_figures.verdict(found, Marked("many"), kept).text


def test_every_night_has_its_bar_and_no_flag_before_it_is_told(found):
    html = nights_figures.bars(found, "").text

    assert html.count('class="gt-run') == N_NIGHTS
    assert 'class="gt-turn' not in html


def test_a_night_is_told_with_what_was_noted_and_no_cause(found):
    for one in found.episodes:
        html = nights_figures.one_night(found, one.last).text
        assert found.night(one.last).commit[:9] in html
        assert one.cause.value not in html


def test_energy_is_the_cards_limit_times_the_time(found):
    hour_ns = 3600 * 10**9

    assert nights_cost.kwh_at_most(found, hour_ns) == pytest.approx(found.machine.card.tdp_w / 1000)


def test_the_price_of_energy_follows_the_price_of_a_kwh(found):
    once, twice = (nights_cost.energy(found, usd, "", SHOWN).text for usd in (0.2, 0.4))

    assert once != twice
    assert once.count("<tr>") == twice.count("<tr>")


def test_a_machine_without_a_price_says_so(found):
    free = replace(found, machine=replace(found.machine, usd_per_hour=None))

    assert "no price" in nights_cost.energy(free, 0.2, "", SHOWN).text
    assert "nobody quotes" in nights_cost.energy_said(free, 0.2)


def test_learning_and_threads_are_drawn(found, kept):
    assert "could not be drawn" not in mo.as_html(nights_cost.learning(found, kept)).text
    assert "char-rnn" in nights_cost.threads(found).text


def test_a_night_can_be_looked_at_step_by_step(found, kept):
    played = night_played(kept, found, N_NIGHTS)

    assert played.step_ns == found.entry(N_NIGHTS).step_ns


def measured(*steps_ns, energy=None, why=None):
    points = [{"key": f"usual-{k}", "step_ns": ns} for k, ns in enumerate(steps_ns)]
    data = {"points": points, "energy": energy, "why_no_energy": why}
    return StoredResult(None, "done", "", {}, data, "", "", 1, 1)


def test_repeats_on_the_readers_machine_say_what_could_be_seen_there():
    html = nights_cost.own(measured(100.0, 100.0, 110.0, 90.0, 100.0, why="no GPU")).text

    assert "differ by up to 10\u00a0%" in html
    assert "Energy is not known: no GPU." in html


def test_measured_energy_is_told_with_how_it_was_found():
    energy = {"energy_j": 7.2e6, "seconds": 60.0, "how": "the card's own counter"}
    html = nights_cost.own(measured(1.0, 1.0, 1.0, energy=energy)).text

    assert "2.0000\u00a0kWh in 60\u00a0s (the card&#x27;s own counter)" in html


def test_without_a_measured_run_there_is_nothing():
    assert nights_cost.own(None) is None


# --- the case of 18.1 ------------------------------------------------------------------------------------------------


def test_the_case_is_about_the_next_nights_and_has_an_answer(found, kept):
    case = why_case(kept, found)
    judged = [WHY.check(option, case).state for option in case["options"]]

    assert case["seed"] != kept.data["seed"]
    assert judged.count("right") == 1
    assert found.machine.card.name in WHY.asked(case)


# --- the watched run -------------------------------------------------------------------------------------------------

PID = 7


def kept_watch(tmp_path, *readings, **told):
    log = JsonLines(tmp_path / "watch.jsonl")
    for one in readings:
        log.note(one)
    log.close()
    data = {"watched": {"readings": "watch.jsonl", "events": "events", "pid": PID, "turned_s": 1002.0, **told}}
    return Kept(result=StoredResult(tmp_path, "done", "", {}, data, "", "", 1, 1))


@pytest.fixture
def watched(tmp_path):
    busy = [reading(simulated(0.95, PID), time_s=1000.0 + k / 2, cpu=IDLE_CPU) for k in range(4)]
    idle = [reading(simulated(0.1, PID), time_s=1002.0 + k / 2, cpu=BUSY_CPU) for k in range(4)]
    other = simulated(0.5, PID + 1)
    others = replace(other, processes=(GpuProcess(PID + 1, "another", None),))
    mixed = [replace(each, devices=(*each.devices, others)) for each in (*busy, *idle)]
    return watched_in(kept_watch(tmp_path, *mixed))


def test_each_half_has_the_watchs_own_verdict(watched):
    assert watched.said(late=False) == Verdict.GPU_BUSY.value
    assert watched.said(late=True) == Verdict.LOADER.value


def test_only_the_runs_own_card_is_counted(watched):
    assert watched.busy_share(late=False) == pytest.approx(0.95)
    assert [share for _, share in watched.lines()[CARD]] == [0.95] * 4 + [0.1] * 4
    assert [at for at, _ in watched.lines()[PROCESSOR]] == [k / 2 for k in range(8)]


def test_a_simulated_card_has_no_energy_and_the_page_says_why(watched):
    assert watched.drawn.energy_j is None
    assert watched.energy_said == "Its energy is not known: power is not simulated."
    assert "could not be drawn" not in mo.as_html(watch_figure(watched)).text


@pytest.mark.parametrize(
    ("told", "says"),
    [
        pytest.param({}, "The run ended before", id="stopped"),
        pytest.param({"watched": {"trouble": "Nothing was watched."}}, "Nothing was watched.", id="busy"),
        pytest.param({"watched": {"readings": "gone", "pid": 1, "turned_s": None}}, "is gone", id="file gone"),
    ],
)
def test_where_nothing_was_watched_one_sentence_says_so(tmp_path, told, says):
    found = watched_in(Kept(result=StoredResult(tmp_path, "done", "", {}, told, "", "", 1, 1)))

    assert says in found.trouble
    assert says in mo.as_html(watch_figure(found)).text.replace("&#x27;", "'")


def test_a_watch_that_never_saw_the_card_says_so(tmp_path):
    assert "never saw" in watched_in(kept_watch(tmp_path, reading(time_s=1000.0))).trouble


def test_a_run_that_was_stopped_in_its_first_half_has_no_second(tmp_path):
    one = watched_in(kept_watch(tmp_path, reading(simulated(0.9, PID), time_s=1000.0), turned_s=None))

    assert one.busy_share(late=True) is None
    assert one.said(late=True) == Verdict.UNKNOWN.value
    assert isinstance(one, Watched)


# --- TensorBoard on the page -----------------------------------------------------------------------------------------


@pytest.fixture
def panel():
    return BoardPanel.__new__(BoardPanel)  # without its thread, which belongs to a page


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(board_panel, "why_not", lambda: "")


def test_an_open_one_shows_its_link_and_the_command(panel, installed, kept):
    html = panel.section([], Opened("open", "http://127.0.0.1:6006/"), events_folder(kept)).text

    assert 'href="http://127.0.0.1:6006/"' in html
    assert "tensorboard --logdir" in html


def test_where_it_is_missing_one_sentence_says_how_to_get_it(panel, monkeypatch, kept):
    monkeypatch.setattr(board_panel, "why_not", lambda: "It is missing; get it.")

    assert panel.buttons(Opened(), events_folder(kept)) == []
    assert "It is missing; get it." in panel.section([], Opened(), events_folder(kept)).text


def test_pages_that_a_class_is_served_open_none(panel, installed, monkeypatch, kept):
    monkeypatch.setattr(readers, "_tell", lambda: None)

    assert panel.buttons(Opened(), events_folder(kept)) == []
    assert "another computer" in panel.section([], Opened(), events_folder(kept)).text


def test_one_that_failed_is_a_sentence(panel, installed, kept):
    assert "It ended." in panel.section([], Opened("failed", "It ended."), events_folder(kept)).text


def test_a_run_without_event_files_says_so(panel):
    assert "no event files" in panel.section([], Opened(), None).text
