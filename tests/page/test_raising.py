"""Lesson 19's page: the same loss on any machine, what is remembered, and the board."""

from __future__ import annotations

import pytest

from gpututor.exercises import ex19, leaderboard
from gpututor.exercises.form import Judged
from gpututor.exercises.keeping import keep_judged
from gpututor.experiments.capstone import ASKED
from gpututor.lookup import machine_named
from gpututor.page.lessons import raising
from gpututor.page.lessons import raising_figures as figures
from gpututor.store import Store

ONE = ex19.RAISED


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))


@pytest.mark.parametrize("machine", ["p3.2xlarge", "g4dn.xlarge", "g5.xlarge", "g6.xlarge"])
def test_our_solution_is_there_with_the_card_busy_and_a_hundredth_of_the_cost(machine):
    found = raising.ours_on(machine_named(machine))

    assert found.yours.reached
    assert found.yours.held_out <= found.target
    assert found.yours.busy_share >= raising.RAISED_SHARE
    assert found.mystery.busy_share < 0.3
    assert found.mystery.usd() > 50 * found.yours.usd()


def test_on_the_rented_machine_even_the_whole_training_is_busy_enough():
    assert raising.ours_on(machine_named()).yours.whole_busy_share >= raising.RAISED_SHARE


def test_a_training_is_its_beginning_and_its_usual_steps():
    yours = raising.ours_on(machine_named()).yours
    usual = (yours.n_steps - yours.n_start) * yours.step_ns

    assert yours.run_ns == pytest.approx(usual + yours.n_start * yours.start.step_ns)
    assert yours.line()[-1][0] == pytest.approx(yours.run_ns / 1e9)


def test_an_attempt_is_remembered_once():
    store, found = Store("ann"), raising.ours_on(machine_named())
    for at in ("2026-01-01T10:00:00+00:00", "2026-01-01T10:00:00+00:00", "2026-01-01T11:00:00+00:00"):
        raising.note_attempt(store, found, at)

    assert [each["at"][11:13] for each in raising.attempts(store)] == ["10", "11"]


def test_what_is_asked_about_is_decided_by_a_run_of_it_alone():
    store = Store("ann")

    assert raising.outcome(store, raising.ours_on(machine_named())) is None
    store.put(raising.LESSON, "asked", 0.12)
    assert raising.outcome(store, raising.ours_on(machine_named())) == 0.12


def test_what_is_said_of_choices_names_what_differs():
    assert figures.said(ASKED) == "64 a step"


def judged(usd):
    return Judged("right", "", (), usd=usd)


def on_board(learner, name, usd):
    store = Store(learner)
    keep_judged(store, ONE, "code", {"machine": "p3.2xlarge"}, judged(usd))
    leaderboard.join(store, ONE, name)
    return store


def test_the_cheapest_answer_is_kept_not_the_last():
    store = on_board("ann", "", 0.002)
    keep_judged(store, ONE, "code", {"machine": "g4dn.xlarge"}, judged(0.001))
    keep_judged(store, ONE, "code", {"machine": "p3.2xlarge"}, judged(0.003))

    best = leaderboard.cheapest(store, ONE)
    assert (best.usd, best.machine) == (0.001, "g4dn.xlarge")


def test_who_chooses_no_name_is_not_on_the_board():
    on_board("ann", "", 0.001)
    on_board("bob", "  The   Fast ", 0.002)
    on_board("cid", "cid", 0.0015)

    assert [each.name for each in leaderboard.board(ONE)] == ["cid", "The Fast"]


def test_who_takes_the_name_away_is_off_it():
    store = on_board("ann", "ann", 0.001)
    leaderboard.join(store, ONE, "")

    assert leaderboard.board(ONE) == ()


def test_without_a_verified_answer_a_name_is_not_enough():
    leaderboard.join(Store("ann"), ONE, "ann")

    assert leaderboard.board(ONE) == ()


def test_a_name_on_the_board_is_text():
    on_board("eve", "<b>eve</b>", 0.001)

    shown = figures.class_board(Store("ann"), "", True).text
    assert "<b>eve" not in shown
    assert "&lt;b&gt;eve" in shown


def test_alone_the_board_is_ones_own_best():
    on_board("ann", "ann", 0.001)

    assert "In a workshop" in figures.class_board(Store("ann"), "", False).text


def test_a_damaged_progress_file_leaves_the_others_on_the_board(tmp_path):
    on_board("ann", "ann", 0.001)
    (tmp_path / "progress" / "zed.json").write_text("{", encoding="ascii")

    assert [each.name for each in leaderboard.board(ONE)] == ["ann"]
