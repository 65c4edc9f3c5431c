"""Lesson 12's experiment: what an update costs by way, rule, number of tensors and rows, and what is learned."""

from __future__ import annotations

import pytest

from gpututor.experiments import optimizers as lesson
from gpututor.experiments.optimizers import COMPARED, N_NUMBERS, deep_key, pieces_key, resnet_key, rows_key
from gpututor.experiments.per_op import host_split
from gpututor.jobs.rules import Rule, Way
from gpututor.lookup import machine_named
from gpututor.progress import Progress
from gpututor.replay import read_tape

torch = pytest.importorskip("torch")

MACHINES = ("p3.2xlarge", "A100-SXM4-80GB", "g4dn.xlarge")
each_machine = pytest.mark.parametrize("name", MACHINES)
COUNTS, SIZES = (1, 300, 3000), (10_000, 300_000)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("optimizers")
    data = lesson.run(Progress(results_dir=folder), counts=COUNTS, n_learned=8, batches=(4,), sizes=SIZES, n_read=4)
    return folder, data, {point["key"]: point for point in data["points"]}


def split(ran, key: str, name: str):
    folder, data, _ = ran
    return host_split(read_tape(folder / data["tapes"][key]), machine_named(name))


def update_ns(ran, way: Way, n: int, name: str, rule: Rule = Rule.ADAM) -> float:
    return split(ran, pieces_key(rule, way, n), name).step_ns


@each_machine
def test_three_thousand_tensors_take_a_loop_dozens_of_times_as_long_as_one(ran, name):
    # pytorch issue 3929: 100 times on a Pascal card; a faster card does the one tensor sooner
    assert update_ns(ran, Way.LOOP, 3000, name) > 50 * update_ns(ran, Way.LOOP, 1, name)


@each_machine
def test_a_loop_launches_a_kernel_for_every_sum_of_every_tensor(ran, name):
    # torch/optim/adam.py, _single_tensor_adam: lerp_, mul_, addcmul_, sqrt, div, add_, addcdiv_; AdamW a mul_ before
    counts = {rule: split(ran, pieces_key(rule, Way.LOOP, COMPARED), name).n_kernels / COMPARED for rule in Rule}

    assert counts == {Rule.SGD: 1, Rule.MOMENTUM: 3, Rule.ADAM: 7, Rule.ADAMW: 8}


@each_machine
def test_lists_and_one_walk_are_each_several_times_as_fast_over_many_tensors(ran, name):
    loop, foreach, fused = (update_ns(ran, way, 3000, name) for way in Way)

    assert loop > 4 * foreach  # pytorch pull request 49039: 5.0 times, of parameters that aren't told
    assert foreach > 1.5 * fused  # deepmd-kit pull request 4463: 2.75 times


@each_machine
def test_over_one_tensor_a_loop_costs_no_more_than_lists(ran, name):
    assert update_ns(ran, Way.LOOP, 1, name) < 1.1 * update_ns(ran, Way.FOREACH, 1, name)


def test_fused_the_rules_cost_nearly_the_same_and_in_a_loop_they_dont(ran):
    def spread(way: Way) -> float:
        times = [update_ns(ran, way, COMPARED, "p3.2xlarge", rule) for rule in Rule]
        return max(times) / min(times)

    assert spread(Way.FUSED) < 3
    assert spread(Way.LOOP) > 7


@pytest.mark.parametrize(("rule", "n_kept"), [(Rule.SGD, 0), (Rule.MOMENTUM, 1), (Rule.ADAM, 2), (Rule.ADAMW, 2)])
def test_a_rule_keeps_so_many_numbers_for_each_parameter(ran, rule, n_kept):
    peak = ran[2][pieces_key(rule, Way.FUSED, COMPARED)]["memory_bytes"]

    assert peak == pytest.approx((2 + n_kept) * 4 * N_NUMBERS, rel=0.02)


def test_lists_take_the_memory_of_one_more_model_for_a_moment(ran):
    # documentation of torch.optim.Adam: foreach takes about sizeof(params) more at its peak than the loop
    peaks = [ran[2][pieces_key(Rule.ADAM, way, COMPARED)]["memory_bytes"] for way in (Way.FOREACH, Way.LOOP)]

    assert peaks[0] - peaks[1] == pytest.approx(4 * N_NUMBERS, rel=0.02)


def test_the_ways_of_a_rule_have_the_same_losses(ran):
    by_way = [ran[2][deep_key(Rule.ADAM, way)]["losses"] for way in Way]

    assert by_way[1][:6] == pytest.approx(by_way[0][:6], rel=1e-5)
    assert by_way[2][:6] == pytest.approx(by_way[0][:6], rel=1e-5)


@each_machine
def test_the_rows_of_a_table_cost_adam_and_not_sparse_adam(ran, name):
    def step(n: int, *, sparse: bool) -> float:
        return split(ran, rows_key(n, sparse=sparse), name).step_ns

    assert step(300_000, sparse=False) > 1.1 * step(10_000, sparse=False)
    assert step(300_000, sparse=True) == pytest.approx(step(10_000, sparse=True), rel=0.02)


@each_machine
def test_a_small_table_is_updated_faster_as_a_whole(ran, name):
    # pytorch issue 81162, on a processor: SparseAdam slower than Adam for 20,000 nodes
    assert (
        split(ran, rows_key(10_000, sparse=True), name).step_ns
        > split(ran, rows_key(10_000, sparse=False), name).step_ns
    )


@each_machine
def test_with_few_pictures_resnets_step_is_a_good_part_the_loop(ran, name):
    loop, fused = (split(ran, resnet_key(way, 4), name).step_ns for way in (Way.LOOP, Way.FUSED))

    assert loop > 1.15 * fused


def test_without_a_number_of_tensors_that_is_compared_the_other_rules_are_left_out():
    keys = [variant.key for variant in lesson.variants(counts=(1,))]

    assert not any(key.startswith("pieces-sgd") for key in keys)
    assert pieces_key(Rule.ADAM, Way.LOOP, 1) in keys


def test_on_a_processor_it_measures_updates_networks_and_tables(monkeypatch):
    seen = {}
    monkeypatch.setattr(lesson.sweeps, "measure", lambda progress, variants, **asked: seen.update(asked, v=variants))
    lesson.measure(Progress(), device="cpu")

    kinds = {variant.key.partition("-")[0] for variant in seen["v"]}
    assert kinds == {"pieces", "deep", "rows"}
    assert max(variant.x for variant in seen["v"] if variant.key.startswith("rows")) == 100_000
