"""Since when steps take longer: rows of step times, counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.history.changes import LEAST, band_of, changes, groups, moved
from gpututor.ledger import Account
from tests.history.runs import MS, row, run


@pytest.mark.parametrize("text", ["10", "10 20", "10 20 10", "10 10 10", "10 10 10 10.2 9.8 10.1"])
def test_no_change_is_seen_in_too_few_runs_or_inside_the_band(text):
    assert changes(row(text)) == ()


def test_a_slower_step_is_dated_to_the_run_in_which_it_began():
    (change,) = changes(row("10 10 10 10 11.8 11.8 11.8"))

    assert (change.since.number, change.until.number, change.n_runs, change.over) == (5, 7, 3, False)
    assert change.share == pytest.approx(0.18)
    assert change.slower


def test_the_sentence_names_run_size_account_and_what_else_is_different():
    runs = [*row("10 10 10"), run(11.8, 3.8, number=31, commit="b" * 40, versions={"torch": "2.14.0"})]

    (change,) = changes(runs)

    words = change.text.replace("\N{NO-BREAK SPACE}", " ")
    assert words.startswith(
        "since run 31: +18 % a step, 10.0 ms before and 11.8 ms after, on the account waiting for input"
    )
    assert "torch 2.13.0 before and 2.14.0 after" in words
    assert "commit aaaaaaaaa before and bbbbbbbbb after" in words
    assert "one run, so it may be chance" in words


def test_a_change_that_went_away_again_is_over():
    (change,) = changes(row("10 10 10 15 15 10"))

    assert (change.since.number, change.until.number, change.over) == (4, 5, True)
    assert change.text.startswith("runs 4 to 5")


def test_a_faster_step_is_a_change_and_no_regression():
    (change,) = changes(row("10 10 10 8 8"))

    assert not change.slower


def test_a_second_change_is_held_against_the_level_of_the_first():
    first, second = changes(row("10 10 10 12 12 12 15 15"))

    assert (first.since.number, second.since.number) == (4, 7)
    assert second.band.expected == 12 * MS


def test_one_bad_run_does_not_move_the_band():
    assert len(changes(row("10 10 10 10 40 10 10 10"))) == 1


def test_runs_that_scatter_have_a_wider_band():
    calm, noisy = band_of(row("10 10 10 10 10")), band_of(row("9 10 11 10.5 9.5"))

    assert calm.high - calm.low == pytest.approx(2 * 0.03 * 10 * MS)
    assert noisy.high == pytest.approx((10 + 3 * 1.4826 * 0.5) * MS)  # the median distance from 10 is 0.5


def test_too_few_runs_have_no_band():
    assert band_of(row("10 10")) is None


def test_runs_of_another_configuration_are_another_group():
    runs = [
        run(number=1),
        run(number=2, configuration={"arguments": ["--batch", "64"]}),
        run(number=3),
        run(None, number=4),
    ]

    assert [[entry.number for entry in group] for group in groups(runs).values()] == [[1, 3], [2]]


def test_versions_and_commit_do_not_make_another_configuration():
    assert run().key == run(versions={"torch": "2.14.0"}, commit="b" * 40).key


def test_accounts_that_moved_come_largest_first():
    found = moved(
        {Account.PAUSE: 5, Account.USEFUL: 7}, {Account.PAUSE: 4, Account.BLOCKING_SYNC: 3, Account.USEFUL: 7}
    )

    assert [(m.account, m.difference_ns) for m in found] == [(Account.BLOCKING_SYNC, 3), (Account.PAUSE, -1)]


@given(st.lists(st.floats(1, 1000), min_size=0, max_size=30))
def test_every_change_lies_outside_the_band_it_is_held_against(times):
    for change in changes(row(" ".join(f"{t:.3f}" for t in times[:28]))):
        assert not change.band.low <= change.since.step_ns <= change.band.high
        assert change.since.number > LEAST


@given(st.integers(4, 28), st.floats(0.5, 500))
def test_repeats_of_one_step_never_change(n, step_ms):
    assert changes(row(" ".join([f"{step_ms:.3f}"] * n))) == ()
