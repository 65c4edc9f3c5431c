"""The translator of any size: it learns, and its layers are the same however they are called."""

from __future__ import annotations

import pytest
import torch

from gpututor.jobs.corpus import Pair
from gpututor.jobs.seq2seq import END
from gpututor.jobs.translator import ENGLISH_LENGTH, FRENCH_LENGTH, Stack, TranslatorJob, sentences

CPU = torch.device("cpu")
SIX = " ".join("abcdef")
PAIRS = (Pair(SIX, SIX), Pair("a b", SIX), Pair(" ".join("fedcba"), SIX))


@pytest.mark.parametrize("layers", [1, 3])
def test_a_call_each_gives_what_one_call_does(layers):
    one, each = (Stack(4, layers, a_call_each=way) for way in (False, True))
    with torch.no_grad():
        for theirs, ours in zip(each.parameters(), one.parameters(), strict=True):
            theirs.copy_(ours)
    word, state = torch.randn(1, 2, 4), torch.randn(layers, 2, 4)

    for a, b in zip(one(word, state), each(word, state), strict=True):
        torch.testing.assert_close(a, b)


def test_only_sentences_of_the_one_length_are_taken():
    french, english = sentences(PAIRS)

    assert french.shape == (FRENCH_LENGTH + 1, 2)
    assert english.shape == (ENGLISH_LENGTH + 1, 2)
    assert english[-1].tolist() == [END, END]


@pytest.mark.parametrize("size", [{"layers": 1}, {"layers": 2}, {"layers": 2, "a_call_each": True}, {"batch": 3}])
def test_it_learns(size):
    job = TranslatorJob(CPU, hidden=32, **size)
    before = job.held_out()
    for k in range(25):
        job(k)

    assert job.held_out() < before


def test_a_job_of_the_same_seed_repeats_itself():
    first, second = (TranslatorJob(CPU, hidden=16) for _ in range(2))
    torch.manual_seed(5)
    losses = [float(first(k)) for k in range(2)]
    torch.manual_seed(5)

    assert [float(second(k)) for k in range(2)] == losses


def test_held_out_sentences_draw_no_dropout():
    job = TranslatorJob(CPU, hidden=16)

    assert job.held_out() == job.held_out()
