"""Lesson 14's experiment: what padding costs whom, that ways to fill up learn the same, and what new shapes cost."""

from __future__ import annotations

import pytest

from gpututor.experiments import ragged
from gpututor.experiments.length_plans import BATCH, POOL, Way, dealt, lengths_in, plan
from gpututor.jobs.lengths import LEAST, MOST, drawn, padding_share
from gpututor.lookup import machine_named
from gpututor.model.tape import BeginStep
from gpututor.progress import Progress
from gpututor.replay import play_file, read_tape

N_TEXTS, N_LONG, N_SHAPES = 48, 32, 14
LENGTHS = drawn(400)
MACHINES = ("p3.2xlarge", "T4", "A100-SXM4-80GB")
each_way = pytest.mark.parametrize("way", Way)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ragged")
    data = ragged.run(Progress(results_dir=folder), n_texts=N_TEXTS, n_long=N_LONG, n_shapes=N_SHAPES)
    return folder, data, {point["key"]: point for point in data["points"]}


def whole_ns(ran, key, name="p3.2xlarge"):
    folder, data, _ = ran
    return play_file(folder / data["tapes"][key], machine_named(name)).timeline.duration_ns


# --- batches ----------------------------------------------------------------------------------------------------------


@each_way
def test_every_text_lies_in_one_batch(way):
    batches = plan(way, LENGTHS, budget=2 * MOST)

    assert sorted(i for batch in batches for i in batch) == list(range(len(LENGTHS)))


def test_lengths_keep_to_their_bounds_and_are_as_uneven_as_their_source():
    many = drawn(4000)

    assert (min(many), max(many)) == (LEAST, MOST)
    assert sorted(many)[2000] == pytest.approx(148, rel=0.1)  # e to the power of 5


def test_a_batch_keeps_to_its_budget():
    found = lengths_in(plan(Way.TOKENS, LENGTHS, budget=2 * MOST), LENGTHS)

    assert max(len(batch) * max(batch) for batch in found) <= 2 * MOST


def test_filled_up_batches_and_packed_ones_are_the_same():
    assert plan(Way.PACKED, LENGTHS) == plan(Way.SHUFFLED, LENGTHS) == plan(Way.FIXED, LENGTHS)


def test_sorting_takes_most_of_the_padding_away():
    shuffled, sorted_ = (padding_share(lengths_in(plan(w, LENGTHS), LENGTHS)) for w in (Way.SHUFFLED, Way.BUCKETED))

    assert shuffled > 0.5
    assert sorted_ < 0.25 * shuffled


def test_sorted_batches_do_not_go_from_short_to_long():
    longest = [max(batch) for batch in lengths_in(plan(Way.BUCKETED, LENGTHS), LENGTHS)]

    assert longest != sorted(longest)
    assert len(LENGTHS) > POOL * BATCH


def test_batches_are_dealt_once_each_and_neighbours_together_where_asked_for():
    batches = [[k] for k in (3, 0, 2, 1)]  # texts of 40, 10, 30 and 20

    assert dealt(2, batches, [10, 20, 30, 40], together=False) == [[0, 2], [1, 3]]
    assert dealt(2, batches, [10, 20, 30, 40], together=True) == [[1, 2], [3, 0]]


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_who_reads_all_at_once_gains_what_padding_was(ran, name):
    fixed, shuffled, sorted_ = (whole_ns(ran, f"gpt2-{way}", name) for way in ("fixed", "shuffled", "bucketed"))

    assert fixed > 1.3 * shuffled > 1.3 * 1.3 * sorted_


@pytest.mark.parametrize("name", MACHINES)
def test_packing_takes_no_step_from_a_chain(ran, name):
    packed, shuffled, sorted_ = (whole_ns(ran, f"lstm-{way}", name) for way in ("packed", "shuffled", "bucketed"))

    assert packed > 0.9 * shuffled
    assert sorted_ < 0.85 * shuffled


def test_a_budget_of_tokens_needs_less_memory(ran):
    points = ran[2]

    assert points["gpt2-tokens"]["memory_bytes"] < 0.6 * points["gpt2-bucketed"]["memory_bytes"]


def test_a_tape_tells_which_part_of_a_step_is_words(ran):
    folder, data, _ = ran
    told = [e for e in read_tape(folder / data["tapes"]["gpt2-shuffled"]).entries if type(e) is BeginStep]
    batches = lengths_in(ragged.long_plan(Way.SHUFFLED, N_LONG), ragged.long_texts(N_LONG))

    assert [e.n_samples for e in told] == [BATCH] * len(batches)
    assert [e.useful_share for e in told] == [pytest.approx(sum(b) / (len(b) * max(b))) for b in batches]


def test_packed_texts_are_words_and_nothing_else(ran):
    folder, data, _ = ran
    told = [e for e in read_tape(folder / data["tapes"]["lstm-packed"]).entries if type(e) is BeginStep]

    assert {e.useful_share for e in told} == {1.0}


# --- what is learned --------------------------------------------------------------------------------------------------


def test_packed_and_filled_up_texts_teach_the_same(ran):
    points = ran[2]

    assert points["lstm-packed"]["losses"] == pytest.approx(points["lstm-shuffled"]["losses"], abs=1e-4)
    assert points["lstm-packed"]["held_out"] == pytest.approx(points["lstm-shuffled"]["held_out"], abs=1e-4)


def test_a_loss_over_padding_tells_less_and_is_more(ran):
    counted, shuffled = (ran[2][f"lstm-{key}"] for key in (ragged.COUNTED, "shuffled"))

    assert counted["losses"][-1] < shuffled["losses"][-1]
    assert counted["held_out"] > shuffled["held_out"]


# --- shapes that change -----------------------------------------------------------------------------------------------


def test_a_search_for_each_length_costs_more_than_all_steps_do(ran):
    assert whole_ns(ran, "frames-search") > 10 * whole_ns(ran, "frames-plain")


def test_lengths_that_come_again_are_searched_for_once(ran):
    assert whole_ns(ran, "frames-search-rounded") < 0.8 * whole_ns(ran, "frames-search")


def test_compiling_anew_costs_more_than_opening_the_length(ran):
    assert whole_ns(ran, "frames-compiled-fixed") > 1.5 * whole_ns(ran, "frames-compiled")


def test_pictures_of_many_sizes_are_searched_for_each_time(ran):
    assert whole_ns(ran, "resnet-changing") > 20 * whole_ns(ran, "resnet-fixed")


def test_all_of_it_fits_on_the_asked_card(ran):
    assert [point["trouble"] for point in ran[2].values() if point["trouble"]] == []


def test_the_processor_measures_what_the_lstm_does(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path))

    data = ragged.measure(Progress(results_dir=tmp_path), device="cpu", n_texts=16)

    assert [point["key"] for point in data["points"]] == [f"lstm-{way.key}" for way in Way]
    assert all(point["step_ns"] > 0 for point in data["points"])


def test_a_tape_has_each_batch_once():
    for each in ragged.variants():
        times = ragged.N_EPOCHS if each.key.startswith("lstm") and each.numerics else 1
        assert each.n_steps == times * each.n_kept
