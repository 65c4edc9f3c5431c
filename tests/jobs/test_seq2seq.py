"""The asker's job: it learns, repeats, and stops for the host as often as it should."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpututor.jobs.seq2seq import (
    END,
    ENGLISH_WORDS,
    FRENCH_WORDS,
    MAX_LENGTH,
    Encoder,
    Seq2SeqJob,
    numbered,
    train,
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def losses() -> list[float]:
    torch.set_num_threads(1)
    return list(train(Seq2SeqJob("cpu", seed=0), 500))


class Reads(TorchDispatchMode):
    """Counts how often a number is read from the device."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def reads_in_a_step(job: Seq2SeqJob) -> int:
    with Reads() as reads:
        job.step(0)
    return reads.n


def test_the_loss_falls_well_below_where_it_began(losses):
    first, last = sum(losses[:50]) / 50, sum(losses[450:]) / 50

    assert last < 0.7 * first


def test_the_first_loss_is_that_of_guessing_among_all_words(losses):
    assert losses[0] == pytest.approx(math.log(ENGLISH_WORDS), abs=0.5)


def test_the_same_seed_gives_the_same_losses(losses):
    assert list(train(Seq2SeqJob("cpu", seed=0), 25)) == losses[:25]


def test_another_seed_gives_other_losses(losses):
    assert list(train(Seq2SeqJob("cpu", seed=1), 5)) != losses[:5]


def test_preparing_sentences_ahead_changes_no_loss(losses):
    assert list(train(Seq2SeqJob("cpu", seed=0, n_steps=40), 10)) == losses[:10]


def test_updating_as_in_2019_changes_no_loss(losses):
    assert list(train(Seq2SeqJob("cpu", seed=0, as_in_2019=True), 10)) == losses[:10]


def test_a_forced_step_reads_from_the_device_once(monkeypatch):
    job = Seq2SeqJob(n_steps=1)
    monkeypatch.setattr("gpututor.jobs.seq2seq.TEACHER_FORCING", 1.0)

    assert reads_in_a_step(job) == 1


def test_a_free_step_reads_from_the_device_at_every_word_besides(monkeypatch):
    job = Seq2SeqJob(n_steps=1)
    monkeypatch.setattr("gpututor.jobs.seq2seq.TEACHER_FORCING", 0.0)
    n_words = job.sentence(0).english.size(0)

    assert reads_in_a_step(job) == 1 + n_words  # an untrained model never guesses the end mark here


def test_about_half_of_the_steps_are_forced():
    job = Seq2SeqJob()
    n_forced = sum(job._forcing.random() < 0.5 for _ in range(1000))

    assert 450 <= n_forced <= 550  # 3 standard deviations of a fair coin


def test_reading_word_by_word_equals_one_call_over_the_sentence():
    encoder = Encoder(n_words=20, hidden=8)
    words, state = torch.tensor([3, 5, 7]), torch.zeros(1, 1, 8)
    whole, _ = encoder.gru(encoder.embedding(words).view(3, 1, 8), state)
    for i, word in enumerate(words):
        output, state = encoder(word, state)

        torch.testing.assert_close(output[0], whole[i])


def test_the_tables_have_the_size_of_the_tutorial():
    job = Seq2SeqJob()

    assert job.encoder.embedding.num_embeddings == FRENCH_WORDS == 4345
    assert job.decoder.out.out_features == ENGLISH_WORDS == 2803


def test_every_word_has_a_row_in_its_table():
    job = Seq2SeqJob()

    assert max(job.french.values()) < FRENCH_WORDS
    assert max(job.english.values()) < ENGLISH_WORDS


def test_a_sentence_ends_in_the_end_mark_and_fits():
    job = Seq2SeqJob(n_steps=50)
    for k in range(50):
        for words in (job.sentence(k).french, job.sentence(k).english):
            assert words[-1].item() == END
            assert words.size(0) <= MAX_LENGTH


def test_words_are_numbered_from_two_in_order_of_appearance():
    assert numbered(["il a faim .", "il a soif ."]) == {"il": 2, "a": 3, "faim": 4, ".": 5, "soif": 6}


def test_the_parts_of_a_step_do_what_the_step_does():
    whole = Seq2SeqJob(seed=3).step(0)
    job = Seq2SeqJob(seed=3)
    sentence = job.sentence(0)
    loss = job.forward(sentence)
    job.backward(loss)
    job.update()

    assert loss.item() / sentence.english.size(0) == whole


def test_a_step_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Seq2SeqJob().step(0)
