"""Lesson 15's experiment at small sizes: what each pause, switch and habit costs, by counts and by wide ratios."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from gpututor.experiments import pauses as lesson
from gpututor.experiments.pauses import DILATED, GREW, VALIDATED, dilated_key, grown_key, resnet_key, small_key
from gpututor.experiments.per_op import host_split
from gpututor.lookup import machine_named
from gpututor.model.marks import LAUNCH_BLOCKING
from gpututor.page.lessons.epochs import step_lengths
from gpututor.progress import Progress
from gpututor.replay import play_file, read_tape
from gpututor.timeline import Activity

torch = pytest.importorskip("torch")

MACHINES = ("p3.2xlarge", "A100-SXM4-80GB", "g4dn.xlarge")
each_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pauses")
    data = lesson.run(Progress(results_dir=folder), n_epochs=1, n_grown=48, n_samples=20_000)
    return folder, data, {point["key"]: point for point in data["points"]}


def path(ran, key):
    folder, data, _ = ran
    return folder / data["tapes"][key]


def step_ns(ran, key, name):
    return host_split(read_tape(path(ran, key)), machine_named(name)).step_ns


def times(ran, slow, fast, name):
    return step_ns(ran, slow, name) / step_ns(ran, fast, name)


def part_ns(ran, key, part, name):
    spans = play_file(path(ran, key), machine_named(name)).timeline.on(Activity.PAUSE)
    return sum(span.duration_ns for span in spans if span.name == part)


# --- an epoch ----------------------------------------------------------------------------------------------------


def test_every_manner_trains_the_same_and_validates_the_same(ran):
    points = ran[2]
    silent = points["silent"]["losses"]

    assert all(points[key]["losses"] == pytest.approx(silent, abs=1e-6) for key in ("found", "often", "tidy"))
    assert points["found"]["noted"]["held 40"] == pytest.approx(points["tidy"]["noted"]["held 40"], abs=1e-4)
    assert silent[-1] < silent[0] / 2


def test_a_checkpoint_holds_the_parameters_and_two_means_of_each(ran):
    from gpututor.jobs.pausing import Network

    n = sum(p.numel() for p in Network().parameters())

    assert ran[2]["found"]["noted"]["state_bytes"] == 3 * 4 * n


@each_machine
def test_a_validation_in_large_batches_without_graphs_takes_a_small_part(ran, name):
    # 160 forward passes and 160 readings against two and one
    assert part_ns(ran, "found", "validation", name) > 20 * part_ns(ran, "tidy", "validation", name)


@each_machine
def test_pausing_four_times_as_often_takes_four_times_as_long_to_validate(ran, name):
    assert part_ns(ran, "often", "validation", name) == pytest.approx(
        4 * part_ns(ran, "found", "validation", name), rel=0.1
    )


def test_the_law_of_pauses_holds_where_the_time_is_virtual(ran):
    name = "p3.2xlarge"
    s, p = step_ns(ran, "silent", name), part_ns(ran, "found", "validation", name)
    reading = part_ns(ran, "found", "log", name)
    alone = 10 * s + p + reading

    often = play_file(path(ran, "often"), machine_named(name)).timeline
    others = sum(span.duration_ns for span in often.on(Activity.PAUSE) if span.name != "validation")
    assert (often.duration_ns - others) / 4 == pytest.approx(alone, rel=0.1)


# --- switches ----------------------------------------------------------------------------------------------------


@each_machine
def test_launches_that_wait_slow_down_a_step(ran, name):
    assert times(ran, small_key("blocking"), small_key("off"), name) > 1.1
    assert times(ran, resnet_key("blocking"), resnet_key("off"), name) > 1.05


def test_the_variable_is_gone_after_its_variant(ran):
    assert LAUNCH_BLOCKING not in os.environ


@each_machine
def test_anomaly_mode_slows_down_a_large_step_as_threads_tell(ran, name):
    # GuyTevet/motion-diffusion-model issue 80: 1.5 times; SynDiff issue 43: 2.5; pytorch-lightning issue 12344: 3
    assert 1.2 < times(ran, resnet_key("anomaly"), resnet_key("off"), name) < 6


@each_machine
def test_anomaly_mode_weighs_more_where_the_host_is_in_command(ran, name):
    small = times(ran, small_key("anomaly"), small_key("off"), name)

    assert small > times(ran, resnet_key("anomaly"), resnet_key("off"), name)


@each_machine
def test_filling_new_memory_is_what_makes_deterministic_mode_slower(ran, name):
    # ultralytics issue 26181: 1.14 times with, 1.00 without
    assert 1.02 < times(ran, resnet_key("deterministic"), resnet_key("off"), name) < 1.4
    assert times(ran, resnet_key("unfilled"), resnet_key("off"), name) == pytest.approx(1.0, abs=1e-3)


@each_machine
def test_deterministic_dilated_convolutions_take_far_longer(ran, name):
    # pytorch issue 28777: more than 10 times
    assert times(ran, dilated_key(DILATED[1]), dilated_key(DILATED[0]), name) > 1.8


@each_machine
def test_an_emptied_cache_is_paid_for_in_each_step_of_a_large_network_and_not_of_a_small_one(ran, name):
    # huggingface/peft pull request 2894: 1.44 times
    assert times(ran, resnet_key("emptied"), resnet_key("off"), name) > 1.1
    assert times(ran, small_key("emptied"), small_key("off"), name) < 1.05


@each_machine
def test_a_profiler_costs_the_host_and_not_a_busy_card(ran, name):
    assert 1.0 < times(ran, small_key("profiler"), small_key("off"), name) < 1.5
    assert times(ran, resnet_key("profiler"), resnet_key("off"), name) < 1.05


# --- what grows, and what stays alive ----------------------------------------------------------------------------


@each_machine
def test_a_sum_over_all_losses_grows_step_by_step_and_a_running_mean_does_not(ran, name):
    grows, stays = (step_lengths(path(ran, grown_key(way)), machine_named(name)) for way in ("all", "last"))

    assert all(b > a for a, b in pairwise(grows[1:]))
    assert max(stays[2:]) < 1.1 * min(stays[2:])


def test_both_have_the_same_mean(ran):
    points = ran[2]

    assert points[grown_key("all")]["noted"]["mean"] == pytest.approx(
        points[grown_key("last")]["noted"]["mean"], rel=1e-5
    )


def test_all_ways_to_keep_losses_train_the_same(ran):
    losses = [ran[2][grown_key(way)]["losses"] for way in GREW]

    assert losses[0] == pytest.approx(losses[1])
    assert losses[0] == pytest.approx(losses[2])


def test_the_collector_leaves_frozen_objects_alone(ran):
    none, many, frozen = (ran[2][key]["noted"] for key in lesson.COLLECTED)

    assert many["n_looked_at"] - none["n_looked_at"] > 1.9 * 20_000
    assert frozen["n_looked_at"] < none["n_looked_at"] < frozen["n_frozen"]


def test_after_the_run_nothing_stays_frozen(ran):
    import gc

    assert gc.get_freeze_count() == 0


def test_a_validation_that_adds_up_losses_with_graphs_keeps_every_batchs_activations(ran):
    kept, none = (ran[2][key]["memory_bytes"] for key in VALIDATED)

    assert kept > 10 * none
