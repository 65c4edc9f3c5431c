"""Lesson 5's experiment: what width and depth do to the gauges, and where it turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpututor.cards import card, machine
from gpututor.experiments import wider_or_deeper as lesson
from gpututor.experiments.sweeps import simulate
from gpututor.progress import Progress
from gpututor.references import reference
from gpututor.replay import Played, play_file, with_card

V100 = machine("p3.2xlarge")
CARDS = ("V100-SXM2-16GB", "A100-SXM4-80GB", "T4")
each_card = pytest.mark.parametrize("name", CARDS)
each_batch = pytest.mark.parametrize("batch", lesson.BATCHES)


class Timed:
    """Every size's tape, shapes only, and its step with a card of choice in the lesson's machine."""

    def __init__(self, folder: Path) -> None:
        shapes_only = [replace(each, n_steps=1, numerics=False) for each in lesson.variants()]
        progress = Progress(results_dir=folder)
        self.data = simulate(progress, shapes_only, what=lesson.WHAT, n_warmup=1)
        self.folder = folder

    def on(self, way: str, factor: int, batch: int = 1, name: str = V100.card.name) -> Played:
        return self.named(lesson.key_of(way, factor, batch), name)

    def named(self, key: str, name: str = V100.card.name) -> Played:
        return play_file(self.folder / self.data["tapes"][key], with_card(V100, card(name)))

    def busy(self, way: str, factor: int, batch: int = 1, name: str = V100.card.name) -> float:
        return self.on(way, factor, batch, name).ledger.gpu_util_share


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    return Timed(tmp_path_factory.mktemp("sizes"))


def test_all_sizes_run(timed):
    assert [point["trouble"] for point in timed.data["points"]] == [None] * len(timed.data["points"])


def test_names_are_not_given_twice():
    keys = [variant.key for variant in lesson.variants()]

    assert len(set(keys)) == len(keys)


def test_those_of_the_guess_train_and_come_first():
    first = lesson.variants()[: len(lesson.TRAINED)]

    assert {each.key for each in first} == set(lesson.TRAINED)
    assert all(each.numerics for each in first)


@each_card
@each_batch
def test_more_units_raise_every_gauge(timed, name, batch):
    ledgers = [timed.on("wide", factor, batch, name).ledger for factor in (1, *lesson.FACTORS)]
    for gauge in ("gpu_util_share", "sm_fill_share", "mfu"):
        shares = [getattr(ledger, gauge) for ledger in ledgers]

        assert shares == sorted(shares)
        assert shares[-1] > 2 * shares[0]


@each_card
@each_batch
def test_layers_with_a_call_each_hardly_move_the_busy_share(timed, name, batch):
    few, many = (timed.busy("each", factor, batch, name) for factor in (1, lesson.FACTORS[-1]))

    assert many / few == pytest.approx(1, abs=0.15)


def test_layers_in_one_call_raise_it_because_python_is_called_once(timed):
    one_call, a_call_each = (timed.on(way, 8) for way in ("deep", "each"))

    assert one_call.ledger.gpu_util_share > 1.5 * a_call_each.ledger.gpu_util_share
    assert one_call.host_ns_per_launch < 0.7 * a_call_each.host_ns_per_launch


@each_card
def test_a_layer_more_makes_a_step_longer_whoever_calls_it(timed, name):
    for way in ("deep", "each"):
        steps = [timed.on(way, factor, 1, name).step_ns for factor in (1, *lesson.FACTORS)]

        assert steps == sorted(steps)
        assert steps[-1] > 1.5 * steps[0]


def test_width_is_free_while_the_host_is_slower(timed):
    assert timed.on("wide", 4).step_ns < 1.05 * timed.on("wide", 1).step_ns


def test_width_is_not_free_any_more_on_a_small_card(timed):
    assert timed.on("wide", 8, name="T4").step_ns > 2 * timed.on("wide", 1, name="T4").step_ns


def test_on_a_v100_the_wider_one_is_busier(timed):
    assert timed.busy("wide", 2) > 1.05 * timed.busy("deep", 2)


def test_on_an_h100_the_deeper_one_is_and_fills_less(timed):
    wide, deep = (timed.on(way, 2, name="H100-SXM").ledger for way in ("wide", "deep"))

    assert deep.gpu_util_share > wide.gpu_util_share
    assert deep.sm_fill_share < wide.sm_fill_share


def test_five_times_the_units_take_about_as_long_as_a_public_benchmark_saw(timed):
    few, many = (timed.named(f"units_{units}").step_ns for units in lesson.BENCHMARK_UNITS)

    assert many / few == pytest.approx(reference("LSTM, 500 units against 100").value, rel=0.1)


def test_a_run_that_is_stopped_early_has_what_it_trained(tmp_path):
    seen: list[int] = []
    progress = Progress(lambda k, *_: seen.append(k), lambda: seen[-1] >= 4, tmp_path)  # 2 to warm up, 1, 1 of the next
    (only,) = lesson.run(progress, n_steps=1)["points"]

    assert only["key"] == "base"
    assert 7 < only["losses"][0] < 9  # ln 2803 is 7.94: it doesn't know a word yet
    assert 7 < only["held_out"] < 9
