"""What the page of lesson 15 says: its sentences follow the numbers, whichever way a machine turns them."""

from __future__ import annotations

import re

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.experiments.pauses import COLLECTED, EVERY, VALIDATED, grown_key, resnet_key, small_key
from gpututor.experiments.per_op import HostSplit
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, EndRun, HostWork, Tape, TapeOp
from gpututor.model.tape_file import save
from gpututor.page.kept import Kept
from gpututor.page.lessons import pause_figures as figures
from gpututor.page.lessons.epochs import Epoch, step_lengths
from gpututor.page.lessons.pauses import Pauses, pauses_of
from gpututor.timeline import Activity

MS = 1_000_000
HERE = machine(DEFAULT_MACHINE)
EPOCH = Epoch(1000.0, 250.0, {"validation": 500.0, "checkpoint": 150.0, "histograms": 50.0})


def split(ms):
    return HostSplit(ms * MS, 0, 0, 0, 0, 0, ms * MS / 2, 10.0, 1)


def epoch_tape(step_ms=1, validation=20, checkpoint=15, histograms=5):
    """An epoch on one step of the tape, its steps as Python and its pauses one after the other."""
    parts = {"validation": validation, "checkpoint": checkpoint, "histograms": histograms}
    work = HostWork(Activity.PYTHON, "steps", EVERY * step_ms * MS)
    paused = [HostWork(Activity.PAUSE, name, ms * MS) for name, ms in parts.items()]
    return Tape("", [BeginStep(), work, TapeOp("mul", HostKind.VIEW, "no_grad"), *paused, EndRun()])


def growing(*lengths_ms):
    return Tape(
        "", [e for ms in lengths_ms for e in (BeginStep(), HostWork(Activity.PYTHON, "", ms * MS))] + [EndRun()]
    )


@pytest.fixture
def found(tmp_path):
    def make(steps=None, tapes=None, noted=None, memory=None, losses=None):
        paths = {}
        for key, tape in (tapes or {}).items():
            paths[key] = tmp_path / f"{key}.tape.gz"
            save(tape, paths[key])
        for key in steps or {}:
            paths.setdefault(key, tmp_path / "none")
        return Pauses(
            HERE, {k: split(ms) for k, ms in (steps or {}).items()}, paths, losses or {}, noted or {}, memory or {}
        )

    return make


# --- an epoch ----------------------------------------------------------------------------------------------------


def test_what_is_neither_step_nor_pause_is_waiting_for_the_loss():
    assert EPOCH.reading_ns == 50.0
    assert EPOCH.trained_share == 0.25


def test_an_epoch_is_split_by_the_names_of_its_pauses(found):
    seen = found({"silent": 1}, {"found": epoch_tape()}).epoch("found")

    assert {name: ns / MS for name, ns in seen.parts_ns.items()} == {
        "validation": 20,
        "checkpoint": 15,
        "histograms": 5,
    }
    assert seen.steps_ns == EVERY * MS
    assert seen.trained_share == pytest.approx(0.5, rel=1e-3)


def test_with_less_of_a_run_the_question_has_no_answer_yet(found):
    assert found({"silent": 1}).trained_share is None


def test_the_law_gives_what_was_run_at_its_own_number_of_steps(found):
    pauses = found({"silent": 1}, {"found": epoch_tape()})
    seen = pauses.epoch("found")

    assert dict(pauses.shares(seen))[EVERY] == pytest.approx(seen.trained_share)
    assert dict(pauses.shares(seen))[10 * 2**8] > 0.98


def test_nineteen_of_twenty_parts_take_nineteen_times_the_pauses(found):
    pauses = found({"silent": 1}, {"found": epoch_tape()})

    assert pauses.steps_for(pauses.epoch("found")) == pytest.approx(19 * 40)  # pauses of 40 ms, steps of one


def test_the_longest_pause_is_named(found):
    pauses = found({"silent": 1}, {"found": epoch_tape(checkpoint=60), "tidy": epoch_tape(1, 1, 1, 1)})

    assert "The longest is the checkpoint, 60.0\u00a0ms." in pauses.parts_said


# --- switches ----------------------------------------------------------------------------------------------------


def test_a_switch_is_compared_on_both_networks(found):
    pauses = found({small_key("off"): 2, small_key("anomaly"): 10, resnet_key("off"): 20, resnet_key("anomaly"): 30})

    assert pauses.times("anomaly") == (5.0, 1.5)
    assert pauses.left_on == ["off", "anomaly"]


def test_without_resnet_its_column_stays_empty(found):
    pauses = found({small_key("off"): 2, small_key("anomaly"): 10})

    assert pauses.times("anomaly") == (5.0, None)
    assert "not run" in figures.switches(pauses).text


def test_the_dearest_switch_is_named_and_free_ones_are(found):
    said = found({small_key("off"): 2, small_key("anomaly"): 10, small_key("emptied"): 2}).switches_said

    assert "set_detect_anomaly(True), 5.0 times" in said
    assert "This costs hardly anything here: empty_cache() after each step." in said


def test_where_none_was_run_nothing_is_said(found):
    assert found({small_key("off"): 2}).switches_said == ""


# --- growth ------------------------------------------------------------------------------------------------------


def test_steps_are_as_long_as_the_tape_has_them(tmp_path):
    save(growing(3, 1, 4), tmp_path / "tape.gz")

    assert step_lengths(tmp_path / "tape.gz", HERE) == [3 * MS, MS, 4 * MS]


def test_a_step_that_grows_by_one_from_ten_has_doubled_after_ten(found):
    pauses = found(tapes={grown_key("all"): growing(*range(10, 50))})

    assert pauses.growth[1] == pytest.approx(MS * 30 / 30)
    assert pauses.doubled_after == pytest.approx(10, abs=6)
    assert "1.00\u00a0ms longer than the one before" in pauses.growth_said


def test_where_nothing_grows_it_says_so(found):
    pauses = found(tapes={grown_key("all"): growing(*[5] * 40)})

    assert pauses.doubled_after == float("inf")
    assert "no step got longer" in pauses.growth_said


# --- what stays alive --------------------------------------------------------------------------------------------


def test_a_collection_is_the_middle_one(found):
    def collected(*ms):
        return Tape("", [BeginStep(), *(HostWork(Activity.PAUSE, "garbage collection", m * MS) for m in ms), EndRun()])

    pauses = found(tapes={COLLECTED[0]: collected(90, 50, 60)})

    assert pauses.collections_ns == {COLLECTED[0]: 60 * MS}


def test_a_validation_too_large_for_the_card_is_told(found):
    pauses = found(memory=dict(zip(VALIDATED, (33 << 30, 1 << 29), strict=True)))

    assert pauses.graphs_bytes == (33 << 30, 1 << 29)
    assert "too much for a V100" in figures.kept(pauses).text
    assert re.search("0.5\u00a0GiB at most", figures.kept(pauses).text)


def test_with_nothing_run_there_is_no_figure_of_what_stays(found):
    assert figures.kept(found()) is None
    assert figures.elsewhere(found()) is None
    assert figures.money(found()) is None


# --- losses and threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("worst", "said"), [(0.0, "the losses are the same"), (0.25, "differ by 0.25 at most")])
def test_losses_are_compared_step_by_step(found, worst, said):
    assert said in found(losses={"found": (1.0, 0.5), "tidy": (1.0, 0.5 + worst)}).same_losses_said


def test_every_thread_has_its_line_and_those_without_a_run_say_so(found):
    pauses = found({small_key("off"): 2, small_key("anomaly"): 6})
    ratios = {reference.name: ours for reference, ours in figures.threads(pauses)}

    assert ratios.pop("anomaly mode, small work") == 3.0
    assert set(ratios.values()) == {None}
    assert len(ratios) == 7


def test_without_a_run_there_are_no_variants():
    assert not pauses_of(Kept(), HERE).tapes
