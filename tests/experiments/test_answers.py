"""Lesson 9's experiment: who waits how often, what a wait costs, and where it goes when it is taken away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpututor.cards import machine
from gpututor.errors import TimelineError
from gpututor.experiments import answers as lesson
from gpututor.experiments.answers import at_length
from gpututor.experiments.stopwatch import LAST_WAIT, Stopwatch, stopwatch
from gpututor.experiments.sweeps import Variant, simulate
from gpututor.jobs import characters
from gpututor.jobs.habits import EVERY, HABITS
from gpututor.jobs.matching import N_PICTURES, N_SETS
from gpututor.lookup import machine_named
from gpututor.model.tape import Tape
from gpututor.progress import Progress
from gpututor.replay import play_file, read_tape
from gpututor.timeline import Activity

V100 = machine("p3.2xlarge")
MACHINES = ("p3.2xlarge", "A100-SXM4-80GB", "g4dn.xlarge")
LENGTHS = (8, 32, 96, 160)  # some of the lesson's
each_machine = pytest.mark.parametrize("name", MACHINES)
SELDOM = ("tenth", "sum")
FEW = ("silent", "item", "bar", "both", "later", "plain", "plain-item")


class Run:
    """Variants that were run, and their stopwatch on a machine."""

    def __init__(self, folder: Path, variants, **how) -> None:
        self.folder = folder
        self.seen: dict[tuple[str, str], Stopwatch] = {}
        self.data = simulate(Progress(results_dir=folder), variants, what=lesson.WHAT, **how)

    def path(self, key: str) -> Path:
        return self.folder / self.data["tapes"][key]

    def on(self, key: str, name: str = V100.name) -> Stopwatch:
        if (key, name) not in self.seen:
            self.seen[key, name] = stopwatch(read_tape(self.path(key)), machine_named(name))
        return self.seen[key, name]


@pytest.fixture(scope="module")
def habits(tmp_path_factory) -> Run:
    # a number copied aside has to be known; the others are followed by shape
    chosen = [replace(each, numerics=each.key == "later") for each in lesson.habits() if each.key in FEW]
    return Run(tmp_path_factory.mktemp("habits"), chosen, n_steps=6, n_kept=6, n_warmup=1)


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Run:
    """Every habit, really computed, with lines of a few characters."""
    variants = [
        replace(lesson._swept(habit, 8), key=habit.key, n_steps=EVERY if habit.key in SELDOM else 2, numerics=True)
        for habit in HABITS
    ]
    return Run(tmp_path_factory.mktemp("short"), variants, n_kept=EVERY)


@pytest.fixture(scope="module")
def lengths(tmp_path_factory) -> Run:
    chosen = [each for each in lesson.lengths() if each.x in LENGTHS]
    return Run(tmp_path_factory.mktemp("lengths"), chosen)


@pytest.fixture(scope="module")
def matchings(tmp_path_factory) -> Run:
    shapes = [replace(each, n_steps=2) for each in lesson.matchings()]
    return Run(tmp_path_factory.mktemp("matchings"), shapes)


def saved_ns(lengths: Run, n: int, name: str) -> float:
    both, silent = (lengths.on(at_length(key, n), name) for key in ("both", "silent"))
    return both.step_ns - silent.step_ns


# --- counted -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "waits"),
    [
        ("silent", 0),
        ("item", 1),
        ("print", 1),
        ("cpu", 1),
        ("bar", 1),
        ("check", 1),
        ("both", 2),
        ("mask", 2),  # once for the scores, once for what follows
        ("tenth", 0.1),
        ("sum", 0.1),
        ("plain", 1),
        ("plain-item", 2),
    ],
)
def test_a_step_waits_so_often(short, key, waits):
    assert short.on(key).n_waits == pytest.approx(waits)


def test_a_detector_waits_for_each_table_and_for_each_set_sent_back(matchings):
    assert matchings.on("one-by-one").n_waits == N_SETS * N_PICTURES + N_SETS
    assert matchings.on("together").n_waits == 2


def test_every_habit_has_the_same_losses(short):
    told = {point["key"]: point["losses"] for point in short.data["points"]}

    assert all(losses[:2] == pytest.approx(told["silent"], rel=1e-6) for losses in told.values())


def test_the_length_named_here_is_the_jobs():
    assert lesson.LENGTH == characters.LENGTH


def test_names_are_not_given_twice():
    keys = [each.key for each in [*lesson.habits(), *lesson.lengths(), *lesson.matchings()]]

    assert len(set(keys)) == len(keys)


# --- the stopwatch -----------------------------------------------------------------------------------------------


@each_machine
@pytest.mark.parametrize("key", ["both", "plain"])
def test_a_stopwatch_agrees_with_the_timeline(habits, key, name):
    watch, played = habits.on(key, name), play_file(habits.path(key), machine_named(name))
    asked = [s for s in played.timeline.on(Activity.SYNC) if s.name != LAST_WAIT]
    n_steps = len(played.timeline.steps)

    assert watch.step_ns == played.step_ns
    assert watch.card_ns * n_steps == pytest.approx(played.ledger.busy_ns)
    assert watch.read_ns * n_steps >= sum(s.duration_ns for s in asked)


def test_a_tape_without_steps_has_no_lines():
    with pytest.raises(TimelineError, match="no steps"):
        stopwatch(Tape("nothing"), V100)


# --- what it costs -----------------------------------------------------------------------------------------------


def test_the_guess_is_about_more_than_a_third_of_the_step(habits):
    item = habits.on("item")

    assert 1 / 3 < item.read_share < 1 / 2


@each_machine
def test_deleting_the_reading_at_the_end_saves_a_few_percent_at_most(habits, name):
    # LANfactory pull request 120 saw 4 %
    saved = habits.on("item", name).step_ns / habits.on("silent", name).step_ns - 1

    assert 0.005 < saved < 0.06


@each_machine
def test_one_of_two_readings_costs_about_what_others_saw(habits, name):
    # fvdb-reality-capture pull request 144: 5 to 7 % with one GPU
    gained = habits.on("both", name).step_ns / habits.on("item", name).step_ns - 1

    assert 0.02 < gained < 0.14


@each_machine
def test_after_the_forward_pass_a_reading_costs_more_than_at_the_end(habits, name):
    assert habits.on("bar", name).step_ns > habits.on("item", name).step_ns


@each_machine
def test_a_number_read_a_step_later_costs_nothing(habits, name):
    assert habits.on("later", name).step_ns < 1.005 * habits.on("silent", name).step_ns


@each_machine
def test_the_wait_moves_to_the_copy_and_the_step_stays(habits, name):
    # Lightning issue 20995
    with_it, without = habits.on("plain-item", name), habits.on("plain", name)

    assert without.read_ns == 0
    assert without.batch_share > 0.7 * with_it.read_share
    assert without.step_ns == pytest.approx(with_it.step_ns, rel=0.03)


@each_machine
def test_a_stopwatch_around_the_batch_shows_other_peoples_work(habits, name):
    # lightly-train pull request 749
    plain = habits.on("plain", name)

    assert plain.batch_share > 0.1
    assert plain.copy_share < 0.01


@each_machine
@pytest.mark.parametrize("n", LENGTHS)
def test_at_most_the_shorter_of_host_and_card_is_saved(lengths, n, name):
    both = lengths.on(at_length("both", n), name)
    wake_ups_ns = 2 * 60e3  # of two waits a step: until the host goes on, and until its first launch has arrived

    assert -1e3 < saved_ns(lengths, n, name) < min(both.launching_ns + both.batch_ns, both.card_ns) + wake_ups_ns


@each_machine
def test_most_is_saved_in_the_middle(lengths, name):
    shares = [saved_ns(lengths, n, name) / lengths.on(at_length("both", n), name).step_ns for n in LENGTHS]

    assert max(shares) > 1.3 * max(shares[0], shares[-1])


def test_a_detector_is_many_times_as_fast_with_one_transfer(matchings):
    # doctr pull request 2141: 434 to 13 ms
    assert 10 < matchings.on("one-by-one").step_ns / matchings.on("together").step_ns < 80


def test_only_a_part_of_that_is_waiting(matchings):
    one, transfer, together = (matchings.on(key) for key in lesson.MATCHED)

    assert 0.1 < (one.step_ns - transfer.step_ns) / (one.step_ns - together.step_ns) < 0.6


def test_on_a_device_every_habit_and_every_matching_is_timed(monkeypatch):
    monkeypatch.setattr(lesson, "LENGTH", 8)
    monkeypatch.setattr(lesson, "STRETCH", 2)
    data = lesson.measure(Progress(), device="cpu", n_stretches=1)
    known = {point["key"]: point["step_ns"] for point in data["points"]}

    assert set(known) == {habit.key for habit in HABITS} | set(lesson.MATCHED)
    assert all(step_ns > 0 for step_ns in known.values())


def test_the_steps_of_a_stretch_are_numbered_on():
    seen = []
    variant = Variant("counted", "counted", lambda device: seen.append)
    stretch = lesson._in_stretches(variant).make(None)
    stretch(0)
    stretch(1)

    assert seen == list(range(2 * lesson.STRETCH))
