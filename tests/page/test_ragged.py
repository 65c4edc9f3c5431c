"""What lesson 14 says of its numbers: the sentences turn with them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from gpututor.experiments.length_plans import Way
from gpututor.lookup import machine_named
from gpututor.model.exchange import RanksExchange
from gpututor.model.spec import Gemm, HostKind
from gpututor.model.tape import BeginStep, EndRun, Sync, Tape, TapeOp
from gpututor.page.lessons.ragged import Ragged, padding_lines
from gpututor.page.lessons.ragged_cards import DEALT, N_WARMUP, Shared, n_texts, part_of
from gpututor.page.lessons.ragged_threads import threads

MS = 1e6
GB = 10**9


class Drawn(Ragged):
    """Times in milliseconds for all texts, in the place of a run's."""

    ms: ClassVar = {
        "gpt2-shuffled": 400,
        "gpt2-bucketed": 200,
        "gpt2-tokens": 200,
        "lstm-shuffled": 60,
        "lstm-packed": 59,
        "lstm-bucketed": 30,
        "lstm-tokens": 45,
    }
    cards: ClassVar = ((600, 10_000, 0.3), (450, 15_000, 0.5), (300, 20_000, 0.3), (200, 30_000, 0.1))

    def whole_ns(self, key):
        return MS * self.ms[key]

    def short_padding(self, way):
        return 0.64

    def shared(self, how, box=None):
        step_ms, words, idle = self.cards[list(DEALT).index(how)]
        return Shared(MS * step_ms, words, idle)


class Host(Drawn):
    """A host that sets the LSTM's pace, and links that do for the cards."""

    ms: ClassVar = {**Drawn.ms, "lstm-packed": 40, "lstm-bucketed": 60, "lstm-tokens": 30, "gpt2-tokens": 100}
    cards: ClassVar = (Drawn.cards[0], Drawn.cards[1], (440, 15_300, 0.5), Drawn.cards[3])


def drawn(kind=Drawn):
    told = {"gpt2-bucketed": {"memory_bytes": 12 * GB}, "gpt2-tokens": {"memory_bytes": 4 * GB}}
    return kind(machine_named(), dict.fromkeys(kind.ms, None), told)


def plain(text):
    return text.replace("\u00a0", " ")


def test_packing_that_saves_arithmetic_and_no_time_is_told_so():
    said = plain(drawn().packed_said)

    assert "Packing takes all 64 % of padding out of its arithmetic and hardly a moment of its time." in said
    assert "Sorting makes it 2.0 times as fast" in said


def test_where_packing_helps_and_sorting_does_not_it_says_that():
    said = drawn(Host).packed_said

    assert "1.5 times as fast" in said
    assert "Nor does sorting help here" in said


def test_a_budget_is_told_by_its_memory_and_what_it_does_to_either():
    assert "GPT-2 needs 33 % of the memory, in the same time. The LSTM it slows down" in plain(drawn().budget_said)
    assert plain(drawn(Host).budget_said).endswith("33 % of the memory, at 2.0 times the speed.")


def test_what_dealing_neighbours_at_once_brings():
    said = plain(drawn().straggling_said)

    assert said.startswith("Here they stand idle for 50 % of their time.")
    assert "it is 30 %, and they read 1.3 times as fast" in said
    assert "dealing changes little" in drawn(Host).straggling_said


def test_one_text_has_no_padding_and_more_of_them_have_more():
    shuffled, sorted_ = padding_lines().values()

    assert shuffled[0] == sorted_[0] == (1, 0.0)
    assert [y for _, y in shuffled] == sorted(y for _, y in shuffled)
    assert all(b < a for (_, a), (_, b) in zip(shuffled[1:], sorted_[1:], strict=True))


def test_without_a_run_nothing_is_asked():
    empty = Ragged(machine_named(), {}, {})

    assert empty.asked is None
    assert not empty.both
    assert not empty.learned
    assert not empty.shaped
    assert empty.straggling_said == ""
    assert {ours for _, ours in threads(empty)} == {None}


def test_a_billion_words_cost_their_time(monkeypatch):
    monkeypatch.setattr(Drawn, "lengths", property(lambda self: [500, 500]))

    # 1,000 words in 0.4 s at $3.06 an hour: a billion take 400,000 s
    assert drawn().usd("gpt2-shuffled") == pytest.approx(400_000 / 3600 * 3.06)
    assert drawn().money_said == "Of $340.00 for a billion words, sorting saves $170.00."
    free = replace(drawn(), machine=replace(machine_named(), usd_per_hour=None))
    assert free.usd("gpt2-shuffled") is None
    assert free.money_said == ""


# --- several cards ----------------------------------------------------------------------------------------------------


def tape_of(n):
    """A step for each of `n` batches, the k-th with k + 1 kernels; the first two were warm-up and come last."""
    product = TapeOp("mm", HostKind.GEMM, "forward", (Gemm("mm", 64, 64, 64, 1000),))
    entries = []
    for at in range(n):
        batch = (at + N_WARMUP) % n
        entries += [
            BeginStep(batch + 1),
            *[product] * (batch + 1),
            RanksExchange("all_reduce", 8, (0, 1, 2, 3), at + 1, 0),
        ]
    return Tape("", [*entries, Sync("synchronize"), EndRun()])


def test_a_rank_gets_the_steps_of_its_batches_in_their_order():
    part = part_of(tape_of(6), 2, [5, 0, 3])

    assert [e.n_samples for e in part.entries if type(e) is BeginStep] == [6, 1, 4]
    assert sum(type(e) is TapeOp for e in part.entries) == 6 + 1 + 4


def test_its_collectives_are_those_of_so_many_ranks():
    part = part_of(tape_of(6), 2, [5, 0, 3])

    assert {e.ranks for e in part.entries if type(e) is RanksExchange} == {(0, 1)}


def test_texts_are_counted_over_all_steps():
    assert n_texts(tape_of(4)) == 1 + 2 + 3 + 4


def test_each_way_to_deal_names_one_to_make_batches():
    assert {way for way, _ in DEALT.values()} <= set(Way)
