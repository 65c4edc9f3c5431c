"""The language model: its layers compute what they say, whichever way the loop runs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gpututor.jobs.next_word import LAYERS, Block, LstmLoop, NextWordJob, OneByOne, Scan, Whole, running_text

WIDTH, LENGTH, BATCH = 8, 6, 3
CPU = torch.device("cpu")


@pytest.fixture
def words():
    torch.manual_seed(1)
    return torch.randn(LENGTH, BATCH, WIDTH)


def seeded(make):
    torch.manual_seed(2)
    return make()


@pytest.mark.parametrize("hoisted", [False, True])
def test_the_loop_computes_what_torchs_lstm_does(words, hoisted):
    loop = seeded(lambda: LstmLoop(WIDTH, hoisted=hoisted))
    call = seeded(lambda: Whole(nn.LSTM(WIDTH, WIDTH)))

    torch.testing.assert_close(loop(words), call(words))


def test_a_call_for_each_word_gives_the_states_of_one_call(words):
    by_word, at_once = (seeded(lambda kind=kind: kind(nn.GRU(WIDTH, WIDTH))) for kind in (OneByOne, Whole))

    torch.testing.assert_close(by_word(words), at_once(words))


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_a_scan_gives_the_states_of_its_own_loop(words, length):
    scan = seeded(lambda: Scan(WIDTH))
    z, new = scan.gates(words[:length]).chunk(2, -1)
    state, states = torch.zeros(BATCH, WIDTH), []
    for t in range(length):
        state = (1 - torch.sigmoid(z[t])) * state + torch.sigmoid(z[t]) * new[t]
        states.append(state)

    torch.testing.assert_close(scan(words[:length]), torch.stack(states))


def test_a_transformer_block_sees_no_later_word(words):
    block = seeded(lambda: Block(WIDTH))
    changed = words.clone()
    changed[-1] += 1

    torch.testing.assert_close(block(words)[:-1], block(changed)[:-1])
    assert not torch.equal(block(words)[-1], block(changed)[-1])


def test_a_column_of_the_text_goes_on_where_the_one_before_ended():
    text, n_words = running_text(4)
    (whole, _) = running_text(1)

    assert torch.equal(text.t().flatten(), whole.flatten()[: text.numel()])
    assert int(text.max()) < n_words


@pytest.mark.parametrize("layer", LAYERS)
def test_every_kind_learns(layer):
    job = NextWordJob(CPU, layer, 8, batch=4, width=32)
    losses = [float(job.step(k)) for k in range(12)]

    assert losses[-1] < losses[0]


def test_the_loop_and_the_call_train_alike():
    losses = [
        [float(job.step(k)) for k in range(3)] for job in (NextWordJob(CPU, kind, 8) for kind in ("loop", "lstm"))
    ]

    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
