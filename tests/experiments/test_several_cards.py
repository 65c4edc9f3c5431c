"""Lesson 16's experiment: what several cards gain and cost by the link between them, and that they learn the same."""

from __future__ import annotations

import pytest

from gpututor.experiments import several_cards, sweeps
from gpututor.lookup import machine_named
from gpututor.model.exchange import RanksExchange
from gpututor.page.lessons.several import ETHERNET, NVLINK, PCIE, boxes
from gpututor.progress import Progress, Stopped
from gpututor.replay import play_file, read_tape

TIMED = ("one", "ddp-2", "ddp-8", "dp-8", "each", "last")
GPT2_WEIGHTS = 124_439_808  # openai-community/gpt2 has as many, without the output layer, which shares the words' table
N_STEPS = 16


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    chosen = [each for each in several_cards.gpt2_variants() if each.key in TIMED]
    variants = [*chosen, *several_cards.learned_variants(N_STEPS)]
    data = sweeps.simulate(Progress(results_dir=folder), variants, what="test", machine=several_cards.RUN_ON)
    return folder, data, {point["key"]: point for point in data["points"]}


def step_ns(ran, key: str, link: str, name: str = "p3.2xlarge") -> float:
    folder, data, _ = ran
    return play_file(folder / data["tapes"][key], boxes(machine_named(name))[link]).step_ns


def exchanged(ran, key: str) -> int:
    folder, data, _ = ran
    entries = read_tape(folder / data["tapes"][key]).entries
    return sum(e.n_bytes for e in entries if type(e) is RanksExchange)


def test_every_step_exchanges_a_gradient_for_each_weight(ran):
    assert exchanged(ran, "ddp-8") == 4 * GPT2_WEIGHTS


def test_over_ethernet_eight_cards_are_slower_than_two_and_than_one(ran):
    eight = step_ns(ran, "ddp-8", ETHERNET)

    assert eight > step_ns(ran, "ddp-2", ETHERNET)
    assert eight > step_ns(ran, "one", ETHERNET)


def test_with_nvlink_eight_cards_are_the_fastest(ran):
    assert step_ns(ran, "ddp-8", NVLINK) < 0.5 * step_ns(ran, "ddp-2", NVLINK)


def test_a_step_takes_at_least_its_share_of_the_work_and_at_least_its_exchange(ran):
    sent = 4 * GPT2_WEIGHTS * 2 * 7 / 8  # bytes of each card in a ring of eight

    for link in (NVLINK, PCIE, ETHERNET):
        assert step_ns(ran, "ddp-8", link) > step_ns(ran, "one", link) / 8
    assert step_ns(ran, "ddp-8", ETHERNET) > sent / 1.25e9 * 1e9  # 10 gigabits a second


@pytest.mark.parametrize("name", ["p3.2xlarge", "T4", "A100-SXM4-80GB"])
def test_no_sync_sends_an_eighth_and_is_faster(ran, name):
    assert exchanged(ran, "each") == several_cards.N_MICRO * exchanged(ran, "last")
    assert step_ns(ran, "last", ETHERNET, name) < 0.6 * step_ns(ran, "each", ETHERNET, name)


def test_a_slow_link_costs_data_parallel_more_than_ddp(ran):
    assert step_ns(ran, "dp-8", PCIE) > step_ns(ran, "ddp-8", PCIE)


@pytest.mark.parametrize("key", ["learn-dp-2", "learn-ddp-2", "learn-ddp-8", "learn-last"])
def test_with_the_same_batch_every_way_has_one_cards_losses(ran, key):
    points = ran[2]

    assert points[key]["losses"] == pytest.approx(points["learn-one"]["losses"], abs=2e-6)
    assert points[key]["held_out"] == pytest.approx(points["learn-one"]["held_out"], abs=2e-6)


def test_with_a_batch_for_each_card_the_same_pictures_teach_less(ran):
    points = ran[2]

    assert len(points["learn-wide"]["losses"]) * several_cards.WIDE == N_STEPS
    assert points["learn-wide"]["held_out"] > points["learn-one"]["held_out"]


def test_the_variant_on_ranks_counts_all_their_samples(ran):
    folder, data, _ = ran
    steps = play_file(folder / data["tapes"]["ddp-8"], boxes(machine_named())[NVLINK]).timeline.steps

    assert [step.n_samples for step in steps] == [several_cards.SEQUENCES]


def test_a_card_without_nvlink_has_two_ways(ran):
    assert list(boxes(machine_named("T4"))) == [PCIE, ETHERNET]


def test_a_run_that_is_stopped_on_several_ranks_ends(tmp_path):
    variants = several_cards.learned_variants(N_STEPS)[:3]
    ticks = []
    progress = Progress(lambda *told: ticks.append(told), lambda: len(ticks) > 2 * N_STEPS + 2, tmp_path)

    data = sweeps.simulate(progress, variants, what="test", machine=several_cards.RUN_ON)

    assert [point["key"] for point in data["points"]] == ["learn-one", "learn-dp-2"]


def test_stopped_in_the_first_variant_there_is_nothing(tmp_path):
    (variant,) = [each for each in several_cards.learned_variants(N_STEPS) if each.key == "learn-ddp-2"]
    progress = Progress(stop_asked=lambda: True, results_dir=tmp_path)

    with pytest.raises(Stopped):
        sweeps.simulate(progress, [variant], what="test", machine=several_cards.RUN_ON)


def test_ranks_whose_memory_is_too_small_say_so(tmp_path):
    (variant,) = [each for each in several_cards.gpt2_variants() if each.key == "alike"]

    data = sweeps.simulate(Progress(results_dir=tmp_path), [variant], what="test", machine="RTX-4060")

    assert "out of memory" in data["points"][0]["trouble"]
