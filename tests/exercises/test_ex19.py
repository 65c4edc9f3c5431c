"""Exercises 19.2 and 19.1: solutions, wrong answers, and what weights are judged by."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from gpututor.exercises import ex19
from gpututor.exercises.on_card.ex19_data import HIDDEN, text
from gpututor.jobs.held_out import NAMES, loss_of
from gpututor.lookup import machine_named
from tests.exercises.answers import Answers, Wrong

HERE, THERE = machine_named("p3.2xlarge"), machine_named("g4dn.xlarge")
# $3.06 and $0.526 an hour: a step of 3 ms may take 3 * 3.06 / 0.526 = 17.45 ms there.
CASE = ex19.case_priced(3e6, HERE, THERE, 4.5e6)

PREPARED = """
import torch
from torch.nn import functional as F

BATCH, RATE, STEPS, H = 16, 0.008, 65, 64

def train(encoder, decoder, french, english, n_french, n_english):
    adam = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=RATE, capturable=True, fused=True)
    n, places = french.shape
    lengths = torch.tensor([n_french, n_english]).to("cuda")
    at = torch.arange(places, device="cuda")
    there = (at < lengths[0].unsqueeze(1)).float()
    wanted = torch.where(at < lengths[1].unsqueeze(1), english, -100)
    given = torch.cat((torch.zeros_like(english[:, :1]), english[:, :-1]), 1)

    def step(k):
        adam.zero_grad()
        look, look_state = decoder.attn.weight.split(H, 1)
        join, join_seen = decoder.attn_combine.weight.split(H, 1)
        outputs, _ = encoder.gru(encoder.embedding(french[k].t()))
        state = outputs.gather(0, (lengths[0][k] - 1).view(1, -1, 1).expand(1, -1, H))
        read = outputs.transpose(0, 1) * there[k].unsqueeze(2)
        words = decoder.dropout(decoder.embedding(given[k].t()))
        looks = F.linear(words, look, decoder.attn.bias)
        joins = F.linear(words, join, decoder.attn_combine.bias)
        states = []
        for t in range(places):
            weight = torch.softmax(torch.addmm(looks[t], state[0], look_state.t()), 1)
            seen = torch.bmm(weight.unsqueeze(1), read).squeeze(1)
            mixed = torch.relu(torch.addmm(joins[t], seen, join_seen.t()))
            output, state = decoder.gru(mixed.unsqueeze(0), state)
            states.append(output[0])
        scores = decoder.out(torch.stack(states)).flatten(0, 1)
        loss = F.cross_entropy(scores, wanted[k].t().flatten(), ignore_index=-100, reduction="sum") / BATCH
        loss.backward()
        adam.step()
        return loss.detach()

    torch.manual_seed(1)
    order = torch.cat([torch.randperm(n) for _ in range(STEPS * BATCH // n + 1)]).to("cuda")
"""
GRAPHED = """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(order[:BATCH])
    torch.cuda.current_stream().wait_stream(side)
    held, graph = order[:BATCH].clone(), torch.cuda.CUDAGraph()
    adam.zero_grad()
    with torch.cuda.graph(graph):
        step(held)
    for k in range(1, STEPS):
        held.copy_(order[k * BATCH : (k + 1) * BATCH])
        graph.replay()
"""
SOLUTION = PREPARED + GRAPHED
ONE_BY_ONE = (
    PREPARED.replace("16, 0.008, 65", "64, 0.015, 45")
    + """
    for k in range(STEPS):
        step(order[k * BATCH : (k + 1) * BATCH])
"""
)
TOO_FEW = SOLUTION.replace("65, 64", "12, 64")
SAME_BATCH = SOLUTION.replace("        held.copy_(order[k * BATCH : (k + 1) * BATCH])\n", "").replace(
    "65, 64", "30, 64"
)
READS = SOLUTION.replace("return loss.detach()", "return loss.item()")
ON_HOST = """
import torch

def train(encoder, decoder, french, english, n_french, n_english):
    rows = french.cpu(), english.cpu()
    for half in (encoder, decoder):
        for weight in half.parameters():
            weight.data.copy_((weight.detach().cpu() * 0.9).to("cuda"))
"""
NOT_YET = "def train(encoder, decoder, french, english, n_french, n_english):\n    raise NotImplementedError('soon')\n"

ANSWERS = {
    "19.2": Answers(
        SOLUTION,
        (
            Wrong(ONE_BY_ONE, "times as cheap as the mystery job", hint=3, earned=0.55),
            Wrong(TOO_FEW, "unseen sentences stand at a loss of", hint=1),
            Wrong(SAME_BATCH, "unseen sentences stand at a loss of", hint=1),
            Wrong(READS, "can't be part of a graph", hint=2),
            Wrong(ON_HOST, "Too much was copied", hint=1),
            Wrong(NOT_YET, "NotImplementedError"),
        ),
    ),
    "19.1": Answers(
        lambda case: f"{case['step_ms'] * case['usd_here'] / case['usd_there']:.4g} ms",
        (
            Wrong("0.516", "divides the wrong way round"),  # 3 * 0.526 / 3.06
            Wrong("3", "the step as it is"),
            Wrong("4.5", "how long it does take there"),
            Wrong("17450", "microseconds taken for milliseconds"),
            Wrong("9", "Not that long", hint=1),
            Wrong("long", "is not a number"),
        ),
        CASE,
    ),
}


def random_weights(seed=0):
    known, dice = text(), np.random.default_rng(seed)
    shapes = ex19._shapes(known.n_french, known.n_english)
    return {name: dice.normal(0, 0.1, shapes[name]).astype(np.float32) for name in NAMES}


def test_the_solution_is_right_on_data_that_nobody_saw():
    judged = ex19.RAISED.check(SOLUTION, ex19.RAISED.hidden(random.Random(5)))

    assert judged.state == "right", judged.text


def test_what_it_cost_is_told_for_the_board():
    judged = ex19.RAISED.check(SOLUTION, {})

    assert judged.usd is not None
    assert f"{1e6 * judged.usd:.0f}" in {f"{1e6 * 3.06 / 3600e3 * ms:.0f}" for ms in np.arange(100, 1000, 0.5)}


def test_without_the_loss_nothing_is_told_for_the_board():
    assert ex19.RAISED.check(TOO_FEW, {}).usd is None


def test_the_held_out_sentences_are_none_that_a_training_gets():
    known, unseen = text(), ex19.held_out(ex19.SEED, 3)
    trained = {tuple(row) for row in known.trained.french}

    assert len(unseen) == ex19.N_HELD_OUT
    assert not trained & {tuple(row) for row in unseen.french}


def test_another_draw_holds_out_others():
    assert not np.array_equal(ex19.held_out(ex19.SEED, 1).french, ex19.held_out(ex19.SEED, 2).french)


def test_words_are_numbered_otherwise_for_another_seed():
    words = {seed: Counter(text(seed).trained.french[:, 0]).most_common(1)[0][0] for seed in (19, 20, 21)}

    assert len(set(words.values())) > 1


def test_weights_of_another_shape_are_no_answer():
    known, gave = text(), random_weights()

    assert ex19.weights_in(gave, known.n_french, known.n_english) is not None
    assert ex19.weights_in(gave | {"decoder.out.bias": [0.0]}, known.n_french, known.n_english) is None
    assert ex19.weights_in({name: gave[name] for name in NAMES[1:]}, known.n_french, known.n_english) is None


def test_weights_that_are_no_numbers_have_an_infinite_loss():
    broken = random_weights() | {"decoder.out.bias": np.full(text().n_english, np.nan, np.float32)}

    assert loss_of(broken, ex19.held_out(ex19.SEED, 0)) == float("inf")


def test_where_one_machine_has_no_price_nothing_is_asked():
    assert ex19.case_priced(3e6, machine_named("A100-SXM4-80GB"), THERE, 4e6) is None


def test_the_least_work_is_two_operations_a_product_thrice():
    known = text()
    a_word = 2 * 6 * HIDDEN**2
    words = known.trained.n_french.mean() + known.trained.n_english.mean()
    last = 2 * HIDDEN * known.n_english * known.trained.n_english.mean()

    assert ex19.least_flop(ex19.SEED) == pytest.approx(900 * (a_word * words + last))
