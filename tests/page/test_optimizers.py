"""What the page of lesson 12 says: its sentences follow the numbers, whichever way a machine turns them."""

from __future__ import annotations

import re

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.experiments.optimizers import (
    ALSO,
    BATCHES,
    COMPARED,
    LEARNED,
    N_NUMBERS,
    ROWS,
    deep_key,
    pieces_key,
    resnet_key,
    rows_key,
)
from gpututor.experiments.per_op import HostSplit
from gpututor.jobs.rules import Rule, Way
from gpututor.page.kept import Kept
from gpututor.page.lessons import optimizer_figures as figures
from gpututor.page.lessons.optimizers import FEW, MANY, SMOOTH, Turns, turns_of, words
from gpututor.page.lessons.splits import UPDATE, Steps

MS = 1e6
N_LOSSES = 5 * SMOOTH


def split(step_ms: float, n_kernels: float = 10.0) -> HostSplit:
    return HostSplit(step_ms * MS, 0, 0, 0, 0, 0, step_ms / 2 * MS, n_kernels, 1)


def falling(to: float, n: int = N_LOSSES) -> tuple[float, ...]:
    """Losses on a straight line from 1 down to this one."""
    return tuple(1 + (to - 1) * k / (n - 1) for k in range(n))


def found(
    steps: dict[str, float],
    rests: dict[str, float] | None = None,
    losses: dict[str, tuple[float, ...]] | None = None,
    memory: dict[str, float] | None = None,
    held_out: dict[str, float] | None = None,
) -> Turns:
    return Turns(
        machine(DEFAULT_MACHINE),
        {key: split(ms) for key, ms in steps.items()},
        {key: split(ms) for key, ms in (rests or {}).items()},
        losses or {},
        dict.fromkeys(steps) | (held_out or {}),
        {key: round(per_number * N_NUMBERS) for key, per_number in (memory or {}).items()},
    )


def updates(loop: float, foreach: float, fused: float, n: int) -> dict[str, float]:
    return {pieces_key(Rule.ADAM, way, n): ms for way, ms in zip(Way, (loop, foreach, fused), strict=True)}


def learned(fast_ms: float = 10.0, loop_ms: float = 20.0, **to: float) -> Turns:
    """All rules with the same steps, except in a loop; `to` are the losses that they end at, by rule."""
    ends = {rule: to.get(rule.key, 0.2) for rule in Rule}
    steps = {deep_key(rule, way): loop_ms if way is Way.LOOP else fast_ms for rule, way in (*LEARNED, *ALSO)}
    losses = {
        deep_key(rule, way): falling(ends[rule])[: N_LOSSES if way is Way.FUSED else 6]
        for rule, way in (*LEARNED, *ALSO)
    }
    return found(steps, {deep_key(Rule.ADAM, Way.FUSED): 8.0}, losses)


def texts(html: str) -> list[str]:
    return [re.sub(r"<[^>]+>", "|", row) for row in html.split("<tr")[1:]]


def test_the_question_is_decided_by_the_loop_over_many_and_over_one():
    assert found({**updates(100, 9, 9, MANY), **updates(4, 9, 9, FEW)}).times == 25


def test_without_either_the_question_is_open():
    assert found(updates(100, 9, 9, MANY)).times is None


def test_a_number_of_tensors_counts_once_every_way_was_run():
    half = {key: ms for key, ms in updates(1, 1, 1, 30).items() if "fused" not in key}

    assert found({**updates(1, 1, 1, FEW), **half}).cut == [FEW]


@pytest.mark.parametrize(("fused", "said"), [(0.5, "still gains"), (1.0, "neither gains anything")])
def test_what_the_ways_bring_over_one_tensor_is_told_either_way(fused, said):
    turns = found({**updates(1, 1.2, fused, FEW), **updates(300, 40, 15, MANY)})

    assert said in turns.ways_said
    assert "300\u00a0ms" in turns.ways_said


def test_what_a_rule_keeps_is_what_memory_is_left_beside_parameter_and_gradient():
    keys = {rule: pieces_key(rule, Way.FUSED, COMPARED) for rule in Rule}
    turns = found({}, memory={keys[Rule.SGD]: 8, keys[Rule.ADAM]: 16})

    assert turns.state_bytes(Rule.SGD) == 0
    assert turns.state_bytes(Rule.ADAM) == 8
    assert figures.big_said(turns).count("56\u00a0GB") == 1  # 7 billion times 4 + 4
    assert "112\u00a0GB" in figures.big_said(turns)  # 7 billion times 4 + 4 + 8


def test_foreachs_own_bytes_are_those_beyond_the_loops():
    loop, foreach = (pieces_key(Rule.ADAM, way, COMPARED) for way in (Way.LOOP, Way.FOREACH))

    assert found({}, memory={loop: 16, foreach: 20}).extra_bytes(Rule.ADAM) == 4


def test_the_updates_part_of_a_step_is_what_is_gone_without_it():
    turns = learned(fast_ms=10.0, loop_ms=16.0)

    assert turns.update_share((Rule.ADAM, Way.LOOP)) == pytest.approx(0.5)
    assert turns.update_share((Rule.ADAM, Way.FUSED)) == pytest.approx(0.2)


@pytest.mark.parametrize(("many_rest", "said"), [(99.0, "nobody waits"), (60.0, "64.")])
def test_many_pictures_hide_the_update_or_they_dont(many_rest, said):
    few, many = (resnet_key(Way.LOOP, n) for n in BATCHES)

    assert said in found({few: 10, many: 100}, {few: 6, many: many_rest}).hidden_said


def tables(**sparse_and_dense: tuple[float, float]) -> Turns:
    steps = {}
    for name, (dense, sparse) in sparse_and_dense.items():
        n = int(name[1:])
        steps |= {rows_key(n, sparse=False): dense, rows_key(n, sparse=True): sparse}
    return found(steps)


def test_where_the_named_rows_are_faster_from_the_middle_on_both_sizes_are_told():
    turns = tables(**{f"n{n}": (ms, 2.0) for n, ms in zip(ROWS[-3:], (1.0, 3.0, 6.0), strict=True)})

    assert f"from {ROWS[-2]:,} rows on, 3.0 times at {ROWS[-1]:,}." in turns.sparse_said


@pytest.mark.parametrize(
    ("dense", "said"),
    [
        ((1.0, 1.0), "nowhere faster"),
        ((1.0, 6.0), f"faster at {ROWS[-1]:,} rows, 3.0 times. A smaller table"),
        ((4.0, 6.0), "faster at every size, 3.0 times"),
    ],
)
def test_from_where_on_the_named_rows_are_faster_is_told(dense, said):
    turns = tables(**{f"n{n}": (ms, 2.0) for n, ms in zip((ROWS[0], ROWS[-1]), dense, strict=True)})

    assert said in turns.sparse_said


def test_a_small_table_is_not_called_slower_where_it_isnt():
    turns = tables(**{f"n{ROWS[0]}": (2.0, 2.0), f"n{ROWS[-1]}": (6.0, 2.0)})

    assert "more slowly" not in turns.sparse_said


def test_losses_of_the_table_are_told_once_both_are_there():
    dense, sparse = (rows_key(ROWS[0], sparse=each) for each in (False, True))

    assert found({dense: 1}, held_out={dense: 1.5}).sparse_loss_said == ""
    assert "1.50 and 1.60" in found({dense: 1, sparse: 1}, held_out={dense: 1.5, sparse: 1.6}).sparse_loss_said


def test_the_target_is_the_lowest_loss_that_every_rule_reaches():
    turns = learned(sgd=0.6, adam=0.2, momentum=0.2, adamw=0.2)
    last = falling(0.6)[-SMOOTH:]

    assert turns.target == pytest.approx(sum(last) / SMOOTH)
    assert turns.steps_to_target(Rule.SGD) == N_LOSSES
    # Adam falls twice as fast, 0.8 against 0.4: the mean of 20 losses is there after about half the steps
    assert turns.steps_to_target(Rule.ADAM) == pytest.approx(N_LOSSES / 2, abs=SMOOTH / 2)


def test_a_loop_may_bring_the_better_rule_in_behind_plain_sgd():
    slow = learned(loop_ms=40.0, sgd=0.6)
    quick = learned(loop_ms=11.0, sgd=0.6)

    assert "behind SGD's" in slow.first_said
    assert "still ahead of SGD's" in quick.first_said


def test_ways_that_agree_are_said_to_with_how_well():
    turns = learned()
    other = dict(turns.losses)
    other[deep_key(Rule.ADAM, Way.LOOP)] = tuple(x + 2e-6 for x in turns.losses[deep_key(Rule.ADAM, Way.LOOP)])

    assert "agree to the last digit" in turns.same_said
    assert "The first 6 losses of loop, foreach and fused agree to 5 digits" in learned_with(other).same_said


def learned_with(losses: dict[str, tuple[float | None, ...]]) -> Turns:
    turns = learned()
    return Turns(turns.machine, turns.steps, turns.rests, losses, turns.held_out, turns.memory_bytes)


def test_a_slower_way_draws_the_same_losses_later():
    lines = learned(fast_ms=10.0, loop_ms=20.0).learning_lines()
    loop, fused = lines[words((Rule.ADAM, Way.LOOP))], lines[words((Rule.ADAM, Way.FUSED))]

    assert [loss for _, loss in loop] == [loss for _, loss in fused]
    assert loop[3][0] == pytest.approx(2 * fused[3][0])


def test_what_exercise_1_needs_are_steps_and_times_of_the_rules():
    needs = learned(fast_ms=10.0).needs()

    assert set(needs) == {rule.value for rule in Rule}
    assert {step_ns for _, step_ns in needs.values()} == {10 * MS}


def test_threads_stand_beside_the_same_ratio_from_the_run():
    loop, foreach = (pieces_key(Rule.ADAM, way, COMPARED) for way in (Way.LOOP, Way.FOREACH))
    turns = found(
        {**updates(35, 5, 2, COMPARED), **updates(400, 9, 9, MANY), **updates(4, 9, 9, FEW)},
        memory={loop: 16, foreach: 20},
    )
    ours = {theirs.name: ratio for theirs, ratio in figures.threads(turns)}

    assert ours["3,000 tensors to one, Adam"] == 100
    assert ours["loop to foreach, Adam"] == 7
    assert ours["foreach to fused, update"] == 2.5
    assert ours["memory, foreach to loop"] == 1.25
    assert ours["fused to foreach, step"] is None


def test_the_table_of_rules_has_bytes_and_times():
    memory = {pieces_key(rule, way, COMPARED): 16.0 for rule in Rule for way in Way}
    turns = found({pieces_key(rule, way, COMPARED): 3.0 for rule in Rule for way in Way}, memory=memory)
    adam = next(row for row in texts(figures.rules(turns).text) if "|Adam|" in row)

    assert adam.count("3.00\u00a0ms") == 3
    assert "8\u00a0B" in adam


def test_a_run_that_was_stopped_has_the_figures_of_what_it_ran():
    some = found(updates(35, 5, 2, FEW))

    assert figures.rules(some) is None
    assert figures.resnets(some) is None
    assert figures.table_rows(some) is None
    assert figures.money(some, Kept()) is None
    assert figures.elsewhere(some) is None


def test_before_a_run_there_is_nothing():
    turns = turns_of(Kept(), machine(DEFAULT_MACHINE))

    assert turns.times is None
    assert not turns.compared
    assert not turns.learned
    assert turns.cut == turns.sizes == []


def test_a_step_without_its_update_is_shorter_by_it(tmp_path):
    pytest.importorskip("torch")
    from gpututor.experiments import optimizers as lesson
    from gpututor.experiments.sweeps import simulate
    from gpututor.progress import Progress

    chosen = [v for v in lesson.variants(counts=(), n_learned=3) if v.key == deep_key(Rule.ADAM, Way.LOOP)]
    data = simulate(Progress(results_dir=tmp_path), chosen, what="a test")
    tapes = {key: tmp_path / file for key, file in data["tapes"].items()}
    whole, rest = (Steps(tapes, machine(DEFAULT_MACHINE), without=phase)[chosen[0].key] for phase in (None, UPDATE))

    assert whole.n_kernels - rest.n_kernels == 7 * 102  # a loop's seven sums for each of 102 tensors
    assert rest.step_ns < whole.step_ns
