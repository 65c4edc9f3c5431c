"""A run looked at closely, lines with their legend, prose with its figure."""

from __future__ import annotations

import marimo as mo
import pytest

import gpututor.page as gt
from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.ledger import charge
from gpututor.replay import Played
from gpututor.timeline import Label, Origin
from tests.draw import draw

LABEL = Label(Origin.SIMULATED, "V100-SXM2-16GB", "p3.2xlarge", "drawn", (), 80)
TWO_STEPS = draw(host="aPPPPPbPPPPP", gpu=".aa.....bb..", steps="111111222222", label=LABEL)


@pytest.fixture
def played() -> Played:
    return Played(machine(DEFAULT_MACHINE), TWO_STEPS, charge(TWO_STEPS))


def test_the_typical_step_is_shown_or_all_that_was_kept(played):
    step, whole = gt.close_up(played).timeline, gt.close_up(played, whole=True).timeline

    assert (step.duration_ns, whole.duration_ns) == (6_000, 12_000)


def test_views_of_ones_own_come_first(played):
    close = gt.close_up(played, more={"mine": (0, 1000)})

    assert next(iter(close.views)) == "mine"
    assert (close.view_control().value, close.view_control(last=True).value) == ("mine", "the whole step")


def test_the_window_is_set_to_the_view(played):
    assert tuple(gt.close_up(played, whole=True, more={"mine": (2000, 6000)}).window_control("mine").value) == (2, 6)


def test_the_head_has_its_controls_the_window_last(played):
    head = gt.close_up(played).head("One step", mo.md("which"), mo.md("view"), mo.md("window")).text

    assert head.index("which") < head.index("view") < head.index("window")


def test_what_cant_be_drawn_is_one_sentence(played):
    assert "could not be drawn" in gt.close_up(played).chart(()).text


def test_the_ledger_says_what_happened_here(played):
    figure = gt.ledger_figure(played.ledger, {"launch_overhead": "because"}, title="Where it went", control="a control")

    assert [words for words in ("because", "Where it went", "a control") if words not in figure.text] == []


# --- lines and prose -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "there"), [("a", False), ("ab", True)])
def test_several_lines_have_a_legend_and_one_has_none(names, there):
    drawn = gt.line_figure("T", LABEL, {name: [(1, 1.0), (2, 2.0)] for name in names}, x_title="x")

    assert ("gt-lines" in drawn.text) == there


def test_lines_that_cant_be_drawn_are_one_sentence():
    assert "could not be drawn" in gt.line_figure("T", LABEL, {"a": [(1, 1.0)]}, x_title="x", nonsense=1).text


def test_prose_and_figures_stand_one_below_the_other_and_what_is_missing_is_left_out():
    assert gt.told(mo.md("first"), None, gt.html("second")).text.count("gt-told") == 2


# --- money -----------------------------------------------------------------------------------------------------


def test_a_price_names_its_basis(played):
    assert gt.price_of(played.machine).startswith("p3.2xlarge at $3.06 an hour, ")


def test_what_could_not_run_costs_nothing_to_show():
    assert gt.spent(None, None, "An epoch.").text == ""
