"""GPU-Util in samples, counted on drawn timelines: one character is a microsecond."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.errors import LedgerError
from gpututor.ledger import charge, gpu_util_samples
from tests.draw import draw

US = 1e-6


def test_a_period_of_a_whole_window_shows_the_share_of_the_whole():
    timeline = draw(gpu="##..")

    assert gpu_util_samples(timeline, period_s=4 * US, n_samples=3) == (50, 50, 50)
    assert charge(timeline).gpu_util_share == 0.5


def test_shorter_periods_show_what_each_of_them_held():
    assert gpu_util_samples(draw(gpu="##.#...."), period_s=2 * US, n_samples=5) == (100, 50, 0, 0, 100)


def test_the_window_repeats_across_a_longer_period():
    # five characters at a time of ##.###.###.# …
    assert gpu_util_samples(draw(gpu="##.#"), period_s=5 * US, n_samples=2) == (80, 80)


def test_copies_do_not_count_and_collectives_do():
    timeline = draw(gpu="#...", copy=".>..", gpu_comm="..M.")

    assert gpu_util_samples(timeline, period_s=4 * US, n_samples=1) == (50,)


def test_kernels_at_the_same_time_count_once():
    assert gpu_util_samples(draw(gpu="##..", gpu_2=".##."), period_s=4 * US, n_samples=1) == (75,)


@given(st.text("#.", min_size=1, max_size=40))
def test_a_period_of_one_character_shows_that_character(drawn):
    assert gpu_util_samples(draw(gpu=drawn), period_s=US, n_samples=len(drawn)) == tuple(
        100 if each == "#" else 0 for each in drawn
    )


@pytest.mark.parametrize("wrong", [{"n_samples": 0}, {"period_s": 0}])
def test_no_samples_are_refused(wrong):
    with pytest.raises(LedgerError, match="at least one, longer than zero"):
        gpu_util_samples(draw(gpu="#."), **wrong)
