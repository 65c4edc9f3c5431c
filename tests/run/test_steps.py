"""Where a step ends, told by made-up optimizers and losses."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest
import torch

from gpututor.run.child import in_destructor
from gpututor.run.limits import Limits
from gpututor.run.steps import TAKES_OVER, StepWatch, one_number


class Optimizer:
    """Stands for one of torch's; the watch only asks which one it is."""


@pytest.fixture
def heard():
    return []


@pytest.fixture
def watch(heard):
    """A watch whose clock shows how many marks it saw."""
    return StepWatch(lambda: (len(heard), 0, 0), lambda: heard.append("step"))


def test_only_the_first_optimizer_counts(watch, heard):
    first, second = Optimizer(), Optimizer()
    for optimizer in (first, second, first, second):
        watch.optimizer_stepped(optimizer)

    assert len(heard) == len(watch.marks.best) == 2


def test_another_optimizer_takes_over_when_the_first_one_rests(watch, heard):
    first, second = Optimizer(), Optimizer()
    watch.optimizer_stepped(first)
    for _ in range(TAKES_OVER + 2):
        watch.optimizer_stepped(second)

    assert len(heard) == 1 + 3  # the one that takes over, and two after it


def test_an_optimizer_that_is_gone_leads_no_more(watch, heard):
    watch.optimizer_stepped(Optimizer())
    later = Optimizer()
    watch.optimizer_stepped(later)

    assert len(heard) == 2


def test_backward_passes_count_only_where_no_optimizer_was_made(watch, heard):
    watch.went_backward(torch.ones(1))
    watch.marks.has_optimizer = True
    watch.went_backward(torch.ones(1))

    assert len(heard) == 1


def test_the_best_marks_are_the_scripts_own(watch):
    watch.went_backward(torch.ones(1))
    watch.optimizer_stepped(Optimizer())
    watch.marked(32)

    assert watch.marks.kind == "marked"
    assert [mark.n_samples for mark in watch.marks.best] == [32]


def test_a_mark_carries_the_loss_before_it(watch):
    optimizer = Optimizer()
    for loss in (3.0, 2.0):
        watch.went_backward(torch.tensor(loss))
        watch.optimizer_stepped(optimizer)

    assert [mark.loss for mark in watch.marks.best] == [3.0, 2.0]


@dataclass
class Elsewhere:
    """A tensor of a card whose values are not here."""

    host: object = None
    device: object = None


@pytest.mark.parametrize(
    ("tensor", "number"),
    [
        pytest.param(torch.tensor(2.5), 2.5, id="scalar"),
        pytest.param(torch.tensor([2.5]), 2.5, id="one element"),
        pytest.param(torch.ones(2), None, id="two elements"),
        pytest.param(torch.tensor(1j), None, id="complex"),
        pytest.param(Elsewhere(), None, id="numerics off"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_a_loss_is_one_real_number(tensor, number):
    assert one_number(tensor) == number


@pytest.mark.parametrize(
    ("n_marks", "seconds", "why"),
    [
        (4, 0.0, None),
        (5, 0.0, "after 3 steps, as asked"),
        (0, 9.9, None),
        (0, 10.0, "after 10 s, as asked"),
    ],
)
def test_a_run_ends_at_the_first_limit_that_is_reached(n_marks, seconds, why):
    assert Limits(n_steps=3, skip=2, seconds=10).reached(n_marks, seconds) == why


def test_a_stop_waits_until_a_destructor_is_over():
    seen = []

    class Block:
        def __del__(self):
            seen.append(in_destructor(sys._getframe()))

    Block()
    seen.append(in_destructor(sys._getframe()))

    assert seen == [True, False]
