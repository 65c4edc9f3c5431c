"""cuDNN's persistent kernels: where torch asks for them, what they take, and what takes their place elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.cards import card
from gpututor.lookup import machine_named
from gpututor.model.cost import price
from gpututor.model.costs.rnn import FITTED_BATCH, product_of
from gpututor.model.costs.rnn_layer import is_persistent, kernels_on
from gpututor.model.lowering import lower
from gpututor.model.spec import DeviceCopy, Gemm, HostKind, OpCall, RnnLayer, RnnStep
from gpututor.model.tape import Pricer, TapeOp

V100, T4, A100, A40, H100 = (card(name) for name in ("V100-SXM2-16GB", "T4", "A100-SXM4-40GB", "A40", "H100-SXM"))
GAP_NS = 800  # the queue's, after each kernel
LAYER = {"mode": "lstm", "seq": 40, "batch": 64, "input": 256, "hidden": 256, "dtype": "float16"}
batches, hiddens = st.integers(1, 16).map(lambda k: 8 * k), st.integers(1, 8).map(lambda k: 128 * k)


def call(direction="forward", **sizes):
    return OpCall(f"gpututor.rnn.{direction}", (), tuple((LAYER | sizes).items()))


def layer(mode="lstm", seq=40, batch=64, hidden=256, backward=False):
    gates = {"lstm": 4, "gru": 3, "rnn_relu": 1}[mode]
    return RnnLayer("rnn layer", mode, gates, seq, batch, hidden, "fp16", backward)


# --- which kernel -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "asked", "persistent"),
    [
        (V100, {"seq": 9, "batch": 16}, False),
        (V100, {"seq": 10, "batch": 16}, True),
        (V100, {"seq": 10, "batch": 48}, False),
        (V100, {"seq": 20, "batch": 96}, True),
        (V100, {"seq": 39, "batch": 128}, False),
        (V100, {"seq": 40, "batch": 128}, True),
        (V100, {"batch": 80}, False),
        (V100, {"batch": 24}, False),
        (V100, {"batch": 8}, True),
        (V100, {"mode": "gru"}, True),
        (T4, {}, False),
        (A100, {"seq": 2, "batch": 8}, True),
        (A100, {"batch": 128}, True),
        (A100, {"mode": "gru"}, False),
        (A100, {"mode": "rnn_relu", "batch": 96, "hidden": 1024}, False),
        (A100, {"mode": "rnn_relu", "batch": 96, "hidden": 768}, True),
        (A40, {}, False),
        (H100, {}, True),
    ],
)
def test_torchs_rule_decides_by_card(on, asked, persistent):
    """By hand from use_persist_device_heuristics in pytorch/pytorch aten/src/ATen/native/cudnn/RNN.cpp."""
    assert is_persistent(layer(**asked), on) is persistent


@pytest.mark.parametrize(
    "other",
    [
        {"dtype": "bfloat16"},
        {"dtype": "float32"},
        {"packed": True},
        {"skip_input": True},
        {"layers": 2},
        {"directions": 2},
        {"hidden": 1152},
        {"hidden": 200},
        {"input": 200},
        {"batch": 136},
        {"batch": 12},
        {"seq": 1},
    ],
    ids=str,
)
def test_what_torch_never_asks_a_persistent_kernel_for_runs_step_by_step(other):
    assert any(isinstance(k, RnnLayer) for k in lower(call()).kernels)
    assert not any(isinstance(k, RnnLayer) for k in lower(call(**other)).kernels)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_card_without_it_gets_the_kernels_of_every_step(direction):
    """As many as with the standard algorithm asked for, in the same order, the input's own products aside."""
    on_t4 = kernels_on(lower(call(direction)).kernels, T4)
    standard = lower(call(direction, skip_input=True)).kernels

    steps = [k for k in on_t4 if not (isinstance(k, Gemm) and "input" in k.name)]
    assert steps == list(standard)
    assert sum(isinstance(k, RnnStep) for k in steps) == 40


def test_a_persistent_layer_is_one_launch():
    op = TapeOp("rnn.forward", HostKind.RNN, "forward", lower(call()).kernels)

    launches = {name: len(Pricer(machine_named(name)).op(op).kernels) for name in ("p3.2xlarge", "g4dn.xlarge")}
    assert launches == {"p3.2xlarge": 2, "g4dn.xlarge": 1 + 2 * 40}


# --- how long ---------------------------------------------------------------------------------------------------


def test_an_lstm_on_an_h100_takes_what_flashrnns_authors_measured():
    """768 units, 16 sentences, 1,024 steps: 2.01 ms, 5.19 with the backward pass; what set both constants."""
    sizes = {"seq": 1024, "batch": 16, "input": 768, "hidden": 768}
    turned = DeviceCopy("batch and steps exchanged", 2 * 1024 * 16 * 768 * 2)
    forward_ms, backward_ms = (
        sum(price(k, H100).duration_ns + GAP_NS for k in (*lower(call(direction, **sizes)).kernels, turned)) / 1e6
        for direction in ("forward", "backward")
    )

    assert forward_ms == pytest.approx(2.01, rel=0.02)
    assert forward_ms + backward_ms == pytest.approx(5.19, rel=0.02)


@given(batches, hiddens, st.booleans(), st.sampled_from([V100, A100, H100]))
def test_each_further_step_takes_the_same_time(batch, hidden, backward, on):
    ns = [price(layer("lstm", seq, batch, hidden, backward), on).duration_ns for seq in (10, 20, 30)]

    assert ns[2] - ns[1] == pytest.approx(ns[1] - ns[0], abs=1)


@given(batches, hiddens, st.booleans(), st.sampled_from([V100, A100, H100]))
def test_a_long_persistent_layer_is_never_slower_than_its_steps(batch, hidden, backward, on):
    whole = layer("lstm", 100, batch, hidden, backward)
    parts = kernels_on([whole], T4)

    assert price(whole, on).duration_ns <= sum(price(k, on).duration_ns + GAP_NS for k in parts)


def test_a_wait_takes_longer_on_a_slower_clock():
    slow = replace(H100, boost_clock_hz=H100.boost_clock_hz / 2)

    assert price(layer(batch=8), slow).duration_ns > 1.5 * price(layer(batch=8), H100).duration_ns


# --- ordinary steps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("on", [A100, H100], ids=lambda c: c.name)
def test_from_ampere_on_a_step_is_an_ordinary_product(on, backward):
    step = RnnStep("step", 4, 128, 1024, "fp16", backward)

    assert price(step, on).duration_ns == price(product_of(step), on).duration_ns
    assert product_of(step).flop == step.flop


@pytest.mark.parametrize("backward", [False, True])
def test_a_batch_that_fills_a_v100_takes_what_the_product_takes(backward):
    step = RnnStep("step", 4, 12 * FITTED_BATCH, 1024, "fp16", backward)

    assert price(step, V100).duration_ns == price(product_of(step), V100).duration_ns


@given(st.integers(1, 400), st.sampled_from(["fp16", "fp32"]), st.booleans())
def test_no_larger_batch_is_faster_on_a_v100(batch, form, backward):
    one, more = (
        price(RnnStep("step", 4, n, 1024, form, backward), V100).duration_ns for n in (batch, batch + FITTED_BATCH)
    )

    assert one <= more


@given(st.integers(1, 300), hiddens, st.sampled_from(["fp16", "fp32"]), st.booleans(), st.sampled_from([V100, A100]))
def test_two_directions_take_between_one_and_two_steps(batch, hidden, form, backward, on):
    alone = RnnStep("step", 4, batch, hidden, form, backward)
    alone_ns, side_by_side_ns = (price(step, on).duration_ns for step in (alone, replace(alone, at_once=2)))

    assert alone_ns <= 2 * side_by_side_ns + 2
    assert side_by_side_ns <= 1.02 * alone_ns
