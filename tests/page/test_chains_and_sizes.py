"""What the pages of lessons 2, 4 and 5 say: sentences that follow the run, whichever way a card turns them."""

from __future__ import annotations

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.experiments.one_after_another import KINDS, LENGTH, LENGTHS, OVER_LENGTH, key_of
from gpututor.experiments.wider_or_deeper import FACTORS, WAYS
from gpututor.experiments.wider_or_deeper import key_of as size_key
from gpututor.ledger import charge
from gpututor.page.lessons.chains import Chains, swap_said
from gpututor.page.lessons.mystery import launches_said, whose_said
from gpututor.page.lessons.sizes import MOST, Sizes, free_said
from gpututor.page.sweep import Point
from gpututor.replay import Played
from tests.draw import MS, draw

HERE = machine(DEFAULT_MACHINE)
WORDS_MS = {"loop": 2, "lstm": 1, "transformer": 1}


def played(ms: int, busy_ms: int) -> Played:
    """A step of `ms` milliseconds with one kernel, after the host's part."""
    idle = ms - busy_ms
    host, gpu = "P" * idle + "a" + "S" * (busy_ms - 1), "." * idle + "a" * busy_ms
    step = draw(host=host, gpu=gpu, steps="1" * ms, unit_ns=MS)
    return Played(HERE, step, charge(step))


def point(key: str, ms: int, busy_ms: int = 1, losses: tuple[float, ...] = (1.0,) * 60) -> Point:
    return Point(key, f"the way of {key}", 1, 10, played(ms, busy_ms), losses, None)


def chains(transformer_ms: int = 8) -> Chains:
    usual = {kind: point(kind, 10) for kind in KINDS}
    lengths = {
        key_of(kind, n): point(key_of(kind, n), WORDS_MS.get(kind, 1) * n // 10 + 2)
        for kind, all_lengths in OVER_LENGTH.items()
        for n in {*all_lengths, LENGTH}
    }
    flat = {key_of("transformer", n): point(key_of("transformer", n), transformer_ms) for n in {*LENGTHS, LENGTH}}
    return Chains(HERE, {**lengths, **usual, **flat}, whole=True)


# --- lesson 4 --------------------------------------------------------------------------------------------------


def test_the_lines_begin_at_one():
    assert {line[0][1] for line in chains().length_lines().values()} == {1.0}


def test_another_word_adds_what_two_lengths_differ_by():
    shorter, longer = OVER_LENGTH["loop"][-2:]
    steps_ns = [chains().step_ns("loop", n) for n in (shorter, longer)]

    assert chains().word_ns("loop") == pytest.approx((steps_ns[1] - steps_ns[0]) / (longer - shorter))


@pytest.mark.parametrize(("transformer_ms", "said"), [(500, "it is the slower one"), (2, "It is the faster one")])
def test_who_is_faster_with_few_words_is_said(transformer_ms, said):
    assert said in chains(transformer_ms).few_words_said


def test_all_kinds_reach_the_target():
    assert chains().target == 1.0
    assert chains().until[1](chains().trained[0]) != "—"


@pytest.mark.parametrize(("busy_ms", "said"), [(9, "isn't waiting for the host"), (2, "waits for the host")])
def test_why_a_wider_card_helps_as_it_does_is_said(busy_ms, said):
    assert said in swap_said(played(10, busy_ms), played(10, 9))


def test_a_card_that_now_waits_is_named():
    assert "The H100 needs" in swap_said(played(10, 9), played(10, 2))
    assert "The H100 needs" not in swap_said(played(10, 9), played(10, 9))


# --- lesson 5 --------------------------------------------------------------------------------------------------


def sizes(each_busy_ms: int) -> Sizes:
    busy = {"each": each_busy_ms}
    keys = {size_key(way, factor, 1): (way, factor) for way in WAYS for factor in (1, *FACTORS)}
    return Sizes(HERE, 1, {key: point(key, 10, 2 if f == 1 else busy.get(way, 6)) for key, (way, f) in keys.items()})


def test_a_run_with_every_size_is_whole():
    assert sizes(2).whole
    assert not Sizes(HERE, 1, {}).whole


@pytest.mark.parametrize(("busy_ms", "said"), [(2, "hardly moves"), (6, "goes up all the same")])
def test_whether_layers_called_one_by_one_move_the_gauge_is_said(busy_ms, said):
    assert said in sizes(busy_ms).layers_said


def test_a_gauge_is_drawn_over_every_factor():
    assert [x for x, _ in sizes(2).lines("Busy")[WAYS["wide"]]] == [1, *FACTORS]
    assert sizes(2).lines("One step (ms)")[WAYS["wide"]][-1] == (MOST, 10.0)


def test_width_is_free_or_costs_a_longer_step():
    assert "comes free" in free_said(played(10, 2), played(10, 2))
    assert "a step takes" in free_said(played(10, 2), played(20, 2))


# --- lesson 2 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("busy_ms", "said"), [(2, "can't win it back"), (8, "shortens it")])
def test_whose_doing_most_of_the_step_is_is_said(busy_ms, said):
    assert said in whose_said(played(10, busy_ms))


def test_a_launch_is_told_with_its_kernel():
    assert "1 kernels a step" in launches_said(played(10, 2))["launch_overhead"]
