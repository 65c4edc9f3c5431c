"""The picture of a card's SMs: a square each, filled as high as its share, and in words too."""

from __future__ import annotations

import re

import pytest

import gpututor.page as gt

EVIL = '<script>alert("x")</script>'


def heights(drawn):
    """Height of each filled part, in the picture's units; a whole square is 8."""
    return [float(h) for h in re.findall(r'gt-sm-busy"[^>]* height="([\d.]+)"', drawn)]


@pytest.mark.parametrize("n_sms", [1, 20, 21, 80, 132])
def test_every_sm_has_its_square(n_sms):
    assert gt.sm_picture([0.0] * n_sms, "").count('class="gt-sm"') == n_sms


def test_an_sm_without_work_stays_empty():
    assert heights(gt.sm_picture([0.0, 0.0, 1.0], "")) == [8.0]


def test_an_sm_that_works_half_the_time_is_filled_by_half():
    assert heights(gt.sm_picture([0.5], "")) == [4.0]


@pytest.mark.parametrize(("share", "height"), [(1.2, [8.0]), (-0.1, [])])
def test_a_share_beyond_its_range_stays_within_the_square(share, height):
    assert heights(gt.sm_picture([share], "")) == height


@pytest.mark.parametrize(("n_sms", "size"), [(7, "70 10"), (20, "200 10"), (80, "200 40"), (132, "200 70")])
def test_squares_stand_in_rows_of_twenty(n_sms, size):
    assert f'viewBox="0 0 {size}"' in gt.sm_picture([1.0] * n_sms, "")


def test_a_card_without_sms_draws_nothing_and_does_not_fail():
    assert "<rect" not in gt.sm_pictures([gt.SmPicture("none", (), "")])


def test_a_screen_reader_hears_name_share_and_sentence():
    shown = gt.sm_pictures([gt.SmPicture("softmax", (1.0, 0.0, 0.0, 0.0), "1 block for 4 SMs.")])

    assert 'role="img" aria-label="softmax: 25\u00a0% of the SMs have work. 1 block for 4 SMs."' in shown


def test_several_pictures_stand_side_by_side():
    assert gt.sm_pictures([gt.SmPicture(name, (1.0,), "") for name in "abcd"]).count("<svg") == 4


def test_names_and_sentences_never_become_markup():
    assert "<script" not in gt.sm_pictures([gt.SmPicture(EVIL, (1.0,), EVIL)])
