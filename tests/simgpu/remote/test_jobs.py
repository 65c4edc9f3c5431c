"""The jobs of the lessons run on a card in another process as they do here: the same tape, the same losses."""

from __future__ import annotations

import pytest
import torch

from gpututor.jobs import habits, matching, next_word, seq2seq, translator
from gpututor.simgpu import register
from tests.simgpu.remote.bridge import tape_apart, tape_here
from tests.simgpu.remote.test_same_as_here import one_thread  # noqa: F401  # for every test


def watching(key):
    habit = next(h for h in habits.HABITS if h.key == key)
    return lambda card: habits.Training(habit, card, length=12, n_batches=2).step


def writing(layer):
    return lambda card: next_word.NextWordJob(card, layer, 6, batch=3, width=16).step


JOBS = {
    "a loss kept": watching("silent"),
    "a mask": watching("mask"),
    "read a step later": watching("later"),
    "LSTM step by step": writing("loop"),
    "Transformer": writing("transformer"),
    "matching one by one": lambda card: matching.Detector(matching.MATCHINGS[0][2], card).step,
    "translator": lambda card: translator.TranslatorJob(card, hidden=16, layers=2, batch=3),
    "seq2seq": lambda card: seq2seq.Seq2SeqJob(str(card), hidden=16).step,
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_a_job_leaves_the_same_tape_and_losses(cards, job):
    register()

    def work():
        step = job(torch.device("simgpu"))
        return [float(step(k)) for k in range(2)]

    assert tape_apart(cards, work) == tape_here(work)
