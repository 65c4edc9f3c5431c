"""Optimizers in three ways, and the jobs that put them to work."""

from __future__ import annotations

import pytest
import torch

from gpututor.jobs.rules import Rule, Way
from gpututor.jobs.updates import DECAY, MOMENTUM, N_USED, DeepJob, DeepNet, PiecesJob, RowsJob, _samples, optimizer

CPU = torch.device("cpu")
each_rule = pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.key)
each_way = pytest.mark.parametrize("way", list(Way), ids=lambda way: way.key)


def after_three_updates(rule: Rule, way: Way) -> torch.Tensor:
    parameters = [torch.full((n,), 1.0, requires_grad=True) for n in (1, 2, 3)]
    updates = optimizer(rule, way, parameters, 0.01)
    for k in range(3):
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 0.5 + k)
        updates.step()
    return torch.cat([parameter.detach() for parameter in parameters])


@each_rule
def test_every_way_of_a_rule_gives_the_same_parameters(rule):
    loop, foreach, fused = (after_three_updates(rule, way) for way in Way)

    torch.testing.assert_close(foreach, loop)
    torch.testing.assert_close(fused, loop)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # gradients 0.5, 1.5, 2.5; rate 0.01
        (Rule.SGD, 1 - 0.01 * 4.5),
        # means 0.5, 1.95, 4.255
        (Rule.MOMENTUM, 1 - 0.01 * (0.5 + (MOMENTUM * 0.5 + 1.5) + (MOMENTUM * (MOMENTUM * 0.5 + 1.5) + 2.5))),
    ],
)
def test_a_rule_is_its_formula(rule, expected):
    assert after_three_updates(rule, Way.LOOP).tolist() == pytest.approx([expected] * 6)


def test_adamw_shrinks_the_weights_as_well():
    def first(rule: Rule) -> float:
        parameter = torch.tensor([10.0], requires_grad=True)
        parameter.grad = torch.tensor([1.0])
        optimizer(rule, Way.LOOP, [parameter], 0.01).step()
        return parameter.item()

    # both go down by the rate in the first step; AdamW by rate times decay of the weight before that
    assert first(Rule.ADAM) == pytest.approx(10 - 0.01)
    assert first(Rule.ADAMW) == pytest.approx(10 - 0.01 - 0.01 * DECAY * 10)


@each_way
def test_pieces_hold_the_same_numbers_however_they_are_cut(way):
    assert [sum(p.numel() for p in pieces(way, n)) for n in (1, 4, 8)] == [80, 80, 80]


def pieces(way: Way, n: int) -> list[torch.Tensor]:
    job = PiecesJob(CPU, Rule.ADAM, way, 80, n)
    job(0)
    return job._optimizer.param_groups[0]["params"]


def test_the_deep_network_has_some_hundred_small_tensors():
    sizes = [p.numel() for p in DeepNet().parameters()]

    assert len(sizes) == 6 * 16 + 2 + 4  # six a block, the first layer's two, the last norm's and layer's four
    assert sorted(sizes)[-2] == 64 * 64  # all but the first layer, which sees 16x16 pixels


@each_rule
def test_the_deep_network_learns_with_every_rule(rule):
    job = DeepJob(CPU, rule, Way.FUSED)
    losses = [float(job(k)) for k in range(60)]

    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])
    assert job.held_out() < losses[0]


def test_with_sparse_gradients_the_table_learns_as_well():
    ends = []
    for sparse in (False, True):
        job = RowsJob(CPU, 10_000, sparse=sparse)
        losses = [float(job(k)) for k in range(40)]
        ends.append(sum(losses[-5:]) / 5)

        assert ends[-1] < 0.9 * losses[0]
    assert ends[1] == pytest.approx(ends[0], rel=0.1)


def test_rows_that_nobody_names_stay_as_they_are_with_sparse_gradients():
    moved = {}
    for sparse in (False, True):
        job = RowsJob(CPU, 10_000, sparse=sparse)
        before = job.table.weight.detach().clone()
        for k in range(2):
            job(k)
        moved[sparse] = int((job.table.weight != before).any(1).sum())
    named = len(set(job._named[: 2 * 128].flatten().tolist()))

    assert moved[True] == named
    assert moved[False] == named  # two steps in, Adam too: its means are nothing where no gradient ever was


def test_the_second_time_a_row_is_not_named_adam_moves_it_on_and_sparse_adam_does_not():
    moved = {}
    for sparse in (False, True):
        job = RowsJob(CPU, 10_000, sparse=sparse)
        job(0)
        gone = sorted(set(job._named[:128].flatten().tolist()) - set(job._named[128:256].flatten().tolist()))
        before = job.table.weight[gone].detach().clone()
        job(1)
        moved[sparse] = bool((job.table.weight[gone] != before).any())

    assert moved == {False: True, True: False}


def test_samples_name_rows_all_over_the_table_and_the_same_number_of_them_whatever_its_size():
    small, large = (_samples(n, 2000, 0)[0] for n in (10_000, 1_000_000))

    assert int(large.max()) > 900_000
    assert len(small.unique()) == len(large.unique()) <= N_USED
