"""Lesson 4's experiment: the chain of a recurrent layer, and what others saw of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpututor.cards import card, machine
from gpututor.experiments import one_after_another as lesson
from gpututor.experiments.sweeps import simulate
from gpututor.progress import Progress
from gpututor.references import reference
from gpututor.replay import Played, play_file, with_card

V100 = machine("p3.2xlarge")
CARDS = ("V100-SXM2-16GB", "A100-SXM4-80GB", "T4")
each_card = pytest.mark.parametrize("name", CARDS)


class Timed:
    """Every variant's tape, and its run with a card of choice in the lesson's machine."""

    def __init__(self, folder: Path) -> None:
        shapes_only = [replace(each, n_steps=4, numerics=False) for each in lesson.trained()]
        variants = [*shapes_only, *lesson.timed(), *lesson.threads()]
        self.data = simulate(Progress(results_dir=folder), variants, what=lesson.WHAT, n_kept=lesson.N_KEPT, n_warmup=1)
        self.folder = folder

    def on(self, key: str, name: str = V100.card.name) -> Played:
        return play_file(self.folder / self.data["tapes"][key], with_card(V100, card(name)))

    def n_kernels(self, key: str) -> float:
        ledger = self.on(key).ledger
        return ledger.n_kernels / ledger.n_steps


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    return Timed(tmp_path_factory.mktemp("one"))


def test_all_variants_run(timed):
    assert [point["trouble"] for point in timed.data["points"]] == [None] * len(timed.data["points"])


def test_names_are_not_given_twice():
    keys = [variant.key for variant in [*lesson.trained(), *lesson.timed(), *lesson.threads()]]

    assert len(set(keys)) == len(keys)


def test_the_one_that_the_guess_is_about_comes_first():
    assert lesson.trained()[0].key == "lstm"


def test_each_further_word_is_four_links_more_in_cudnns_call(timed):
    # a product and the gates on the way forward, the same on the way back
    assert timed.n_kernels("lstm_256") - timed.n_kernels("lstm_128") == pytest.approx(4 * 128, rel=0.05)


def test_a_transformer_has_as_many_kernels_for_many_words_as_for_few(timed):
    assert timed.n_kernels("transformer_256") < 1.2 * timed.n_kernels("transformer_16")


@each_card
def test_pythons_loop_takes_as_long_on_every_card(timed, name):
    assert timed.on("loop", name).step_ns == pytest.approx(timed.on("loop").step_ns, rel=0.02)


@each_card
def test_who_runs_the_loop_makes_the_difference(timed, name):
    loop, hoisted, call = (timed.on(kind, name).step_ns for kind in ("loop", "hoisted", "lstm"))

    assert loop > 1.2 * hoisted > 6 * call


@each_card
def test_a_gru_is_cheaper_than_an_lstm(timed, name):
    assert timed.on("gru", name).step_ns < timed.on("lstm", name).step_ns


@each_card
@pytest.mark.parametrize(("kind", "lengths"), [("loop", (64, 128)), ("lstm", (128, 256))])
def test_a_chain_grows_in_proportion_once_it_is_long(timed, name, kind, lengths):
    middle, long = (timed.on(lesson.key_of(kind, n), name).step_ns for n in lengths)

    assert 1.6 < long / middle <= 2.05


@each_card
def test_with_many_words_a_transformer_is_the_faster_one(timed, name):
    assert timed.on("transformer_256", name).step_ns < timed.on("lstm_256", name).step_ns


def test_with_few_words_it_is_the_slower_one(timed):
    # v-mipeng/LexiconAugmentedNER issue 50: an LSTM faster than a Transformer on short sentences
    assert timed.on("transformer_16").step_ns > timed.on("lstm_16").step_ns


def test_a_scan_beats_the_lstm_it_resembles_once_sequences_are_long(timed):
    assert timed.on("scan_256").step_ns < 0.5 * timed.on("lstm_256").step_ns


def test_a_busy_lstm_leaves_most_of_a_v100_idle(timed):
    ledger = timed.on("lstm").ledger

    assert ledger.gpu_util_share > 0.9
    assert ledger.mfu < 0.02


def test_a_larger_card_runs_the_loop_no_faster_as_in_keras_issue_8885(timed):
    seen = reference("LSTM, TITAN V against TITAN Xp").values
    ours = timed.on("loop").step_ns / timed.on("loop", "TITAN-Xp").step_ns

    assert min(seen) <= ours <= max(seen)


def test_letter_by_letter_costs_what_pull_request_5_of_char_rnn_saw(timed):
    ours = timed.on("letters").step_ns / timed.on("stretch").step_ns

    assert ours == pytest.approx(reference("GRU, letter by letter").value, rel=0.3)


def test_one_state_in_a_loop_is_launches_as_in_pytorch_issue_1088(timed):
    played = timed.on("update")

    assert played.step_ns / lesson.THREAD_UPDATES == pytest.approx(reference("one state in a loop, GPU").value, rel=0.3)
    assert played.ledger.gpu_util_share < 0.5


def test_a_run_that_is_stopped_early_has_what_the_guess_is_about(tmp_path):
    seen: list[int] = []
    progress = Progress(lambda k, *_: seen.append(k), lambda: seen[-1] >= 4, tmp_path)  # 2 to warm up, 1, 1 of the next
    (only,) = lesson.run(progress, n_steps=1)["points"]

    assert only["key"] == "lstm"
    assert only["losses"][0] < 6
