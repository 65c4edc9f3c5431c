"""Lesson 3's experiment: what is flat, what grows, what a large batch does to learning."""

from __future__ import annotations

import math

import pytest

from gpututor.experiments import batches
from gpututor.experiments.batches import BASE_RATE, RECIPES, Recipe, schedule
from gpututor.lookup import machine_named
from gpututor.progress import Progress
from gpututor.replay import play_file


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    data = batches.run(Progress(results_dir=folder), batches=(1, 8, 64), n_epochs=1)
    return folder, data, {point["key"]: point for point in data["points"]}


def step_ns(ran, key: str, name: str) -> float:
    folder, data, _ = ran
    return play_file(folder / data["tapes"][key], machine_named(name)).step_ns


def test_eight_pictures_are_free_on_a_v100(ran):
    # pytorch/benchmark#706, ResNet-50 training on a V100: 89.0 ms with 1 picture, 105.1 with 8
    assert step_ns(ran, "batch-8", "p3.2xlarge") <= 105.1 / 89.0 * step_ns(ran, "batch-1", "p3.2xlarge")


def test_sixty_four_pictures_are_not(ran):
    # the same thread: 561 ms with 64, of which 105.1 with 8 is a fifth
    ratio = step_ns(ran, "batch-64", "p3.2xlarge") / step_ns(ran, "batch-8", "p3.2xlarge")

    assert ratio == pytest.approx(561 / 105.1, rel=0.25)


def test_on_a_slower_card_fewer_are_free(ran):
    def times(name: str) -> float:
        return step_ns(ran, "batch-8", name) / step_ns(ran, "batch-1", name)

    assert times("T4") > times("p3.2xlarge") > 0.99


def test_memory_grows_in_a_straight_line_with_the_batch(ran):
    one, eight, many = (ran[2][f"batch-{n}"]["memory_bytes"] for n in (1, 8, 64))

    assert (many - eight) / 56 == pytest.approx((eight - one) / 7, rel=0.1)


def test_the_same_pictures_are_seen_whatever_the_batch(ran):
    seen = {key: len(point["losses"]) * point["n_samples"] for key, point in ran[2].items() if key.startswith("learn")}

    assert set(seen.values()) == {batches.N_PICTURES}
    assert len(seen) == len(RECIPES)


def test_a_larger_batch_at_the_same_rate_learns_less_from_them(ran):
    points = ran[2]

    assert points["learn-64"]["held_out"] > points["learn-16"]["held_out"]


def test_the_rate_grows_like_the_batch_only_where_it_is_scaled():
    assert Recipe(64).rate == BASE_RATE
    assert Recipe(64, scaled=True).rate == pytest.approx(4 * BASE_RATE)


def test_the_schedule_warms_up_to_the_peak_and_ends_near_nothing():
    shares = [schedule(k, 100) for k in range(100)]

    assert shares[:15] == pytest.approx([(k + 1) / 15 for k in range(15)])
    assert max(shares) == 1
    assert shares[57] == pytest.approx(0.5 * (1 + math.cos(math.pi * 42 / 85)))
    assert shares[-1] < 0.001
