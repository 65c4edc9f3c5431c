"""What the page of lesson 3 says: its sentences follow the run, whichever way a card turns them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.ledger import charge
from gpututor.page.kept import Kept
from gpututor.page.lessons.batches import Batches, batches_of
from gpututor.page.sweep import Point
from gpututor.replay import Played
from tests.draw import MS, draw

HERE = machine(DEFAULT_MACHINE)
LOSSES = tuple(1.0 / (k + 1) for k in range(40))


def batch(n: int, step_ms: int | None) -> Point:
    """A step with `n` samples; None where the card lacks the memory."""
    played = None
    if step_ms is not None:
        step = draw(host="P" * step_ms, steps="1" * step_ms, unit_ns=MS)
        played = Played(HERE, step, charge(step))
    return Point(f"batch-{n}", f"{n} pictures", n, n, played, (), None)


def way(key: str, held_out: float) -> Point:
    return replace(batch(16, 2), key=f"learn-{key}", label=key, losses=LOSSES, held_out=held_out)


def found(*steps_ms: int | None, held_out: tuple[float, ...] = (0.2,) * 6) -> Batches:
    timed = [batch(2**k, ms) for k, ms in enumerate(steps_ms)]
    return Batches(HERE, timed, [way(f"way {k}", loss) for k, loss in enumerate(held_out)])


KNEE = found(10, 10, 11, 20, 40, None)


def test_the_largest_batch_that_takes_hardly_longer_is_free():
    assert KNEE.free.x == 4


def test_a_batch_that_does_not_fit_is_left_out():
    assert (KNEE.largest.x, KNEE.chosen()[-1].x) == (16, 16)


def test_how_many_times_as_long_each_takes():
    assert KNEE.times == {1: 1.0, 2: 1.0, 4: 1.1, 8: 2.0, 16: 4.0}


def test_the_law_is_flat_before_the_knee_and_straight_after_it():
    law = dict(KNEE.law())

    assert (law[1], law[4], law[16]) == (10.0, 10.0, 40.0)


def test_where_nothing_is_free_it_says_so():
    assert "nothing is free" in found(10, 20).free_said
    assert "up to 4 pictures are free" in KNEE.free_said


@pytest.mark.parametrize(("same_rate", "said"), [(0.5, "faster, and worse"), (0.21, "about as good")])
def test_what_a_larger_batch_has_learned_is_said(same_rate, said):
    assert found(10, held_out=(0.2, same_rate, 0.2, 0.2, 0.2, 0.2)).worse_said == said


@pytest.mark.parametrize(("last", "said"), [(0.9, "the last line is beyond"), (0.25, "it holds to the last line")])
def test_the_end_of_the_rule_of_thumb_is_said(last, said):
    assert said in found(10, held_out=(0.2, 0.2, 0.2, 0.2, 0.2, last)).learning_said


def test_a_run_that_was_stopped_has_no_table_of_ways():
    stopped = found(10, held_out=(0.2, 0.3))

    assert (stopped.learning_table(), stopped.learning_said) == ("", "")
    assert len(stopped.learning_lines()) == 2


def test_without_a_run_there_is_nothing():
    assert batches_of(Kept(), HERE).times == {}
