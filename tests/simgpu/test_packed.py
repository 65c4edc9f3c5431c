"""Packed sequences: as many time steps as the longest sentence has words, and no work for those that have ended."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gpututor.model.spec import Gemm, RnnStep
from gpututor.model.tape import TapeOp
from gpututor.simgpu import kept, simulated_gpu
from gpututor.simgpu.recurrent import runs_of

LENGTHS = [6, 4, 1]
WORDS = sum(LENGTHS)


def kernels(entries):
    return [kernel for entry in entries if type(entry) is TapeOp for kernel in entry.kernels]


def passed(lengths, *, packed=True):
    """The kernels of a layer's forward and backward pass over sentences of these lengths."""
    with simulated_gpu(numerics=False) as sim:
        lstm, x = nn.LSTM(5, 7).to("simgpu"), torch.randn(max(lengths), len(lengths), 5)
        given = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths)).to("simgpu") if packed else x.to("simgpu")
        n_before = len(sim.tape.entries)
        out, _ = lstm(given)
        (out.data if packed else out).sum().backward()
        return kernels(sim.tape.entries[n_before:])


def batches(found, *, backward):
    return [kernel.batch for kernel in found if isinstance(kernel, RnnStep) and kernel.backward is backward]


def test_sentences_that_go_on_together_are_counted_in_runs():
    assert runs_of(torch.tensor([3, 2, 2, 2, 1, 1])) == ((3, 1), (2, 3), (1, 2))


def test_each_step_has_the_sentences_that_have_not_ended():
    found = passed(LENGTHS)

    assert batches(found, backward=False) == [3, 2, 2, 2, 1, 1]
    assert batches(found, backward=True) == [1, 1, 2, 2, 2, 3]


def test_products_over_the_whole_input_have_a_row_for_each_word():
    products = [k for k in passed(LENGTHS) if isinstance(k, Gemm) and k.name == "rnn input"]

    assert [product.m for product in products] == [WORDS]


def test_sentences_of_one_length_cost_the_same_packed_and_filled_up():
    named = [[k for k in passed([4, 4, 4], packed=packed) if k.name.startswith("rnn")] for packed in (True, False)]

    assert named[0] == named[1]


def test_packing_takes_away_arithmetic_and_no_step():
    lengths, longest = [40, 3, 2, 1], [40, 40, 40, 40]
    packed, filled = ([k for k in passed(each) if isinstance(k, RnnStep)] for each in (lengths, longest))

    assert len(packed) == len(filled) == 2 * 40
    assert sum(k.flop for k in packed) == pytest.approx(sum(k.flop for k in filled) * 46 / 160)


def test_what_is_kept_for_backward_counts_words():
    facts = {"mode": "lstm", "layers": 1, "directions": 1, "seq": 6, "batch": 3, "hidden": 7, "dtype": "float32"}
    facts |= {"train": True}

    assert kept.of_rnn({**facts, "runs": ((3, 1), (2, 3), (1, 2))}) * 18 == kept.of_rnn(facts) * WORDS


@pytest.mark.parametrize("numerics", [True, False])
def test_packing_on_the_card_copies_a_piece_for_each_further_length_and_joins_them(numerics):
    with simulated_gpu(numerics=numerics) as sim:
        x = torch.randn(6, 3, 5).to("simgpu")
        n_before = len(sim.tape.entries)
        nn.utils.rnn.pack_padded_sequence(x, torch.tensor(LENGTHS))
        found = sim.tape.entries[n_before:]

    # the first word of all sentences lies together already; words 2 to 4 of two and 5 to 6 of one are copied out
    assert len(kernels(found)) == 2 + 1
    assert [entry.name for entry in found if type(entry) is TapeOp and entry.kernels][-1] == "cat"
