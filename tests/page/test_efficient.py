"""What the page of lesson 13 says: its sentences follow the numbers, whichever way a machine turns them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpututor.cards import machine
from gpututor.experiments.efficient_ways import (
    ASKED_BATCH,
    BATCHES,
    Bytes,
    Net,
    Order,
    Slim,
    bytes_key,
    learned_key,
    slim_key,
    train_key,
)
from gpututor.experiments.per_op import HostSplit
from gpututor.experiments.slimmed import Way
from gpututor.model import tape_file
from gpututor.model.kernels import Conv, Gemm, Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, EndRun, Tape, TapeOp
from gpututor.page.kept import Kept
from gpututor.page.lessons import efficient_figures as figures
from gpututor.page.lessons.efficient import Paper, paper_of
from gpututor.page.lessons.efficient_elsewhere import CARDS, OTHERS, Everywhere, cards_figure
from gpututor.page.lessons.kernel_kinds import Kind, by_kind, forward_flop, kind_of

MS = 1e6
V100, A100, K80 = "p3.2xlarge", "A100-SXM4-80GB", "p2.xlarge"


def split(step_ms: float, n_kernels: float = 10.0) -> HostSplit:
    return HostSplit(step_ms * MS, 0, 0, 0, 0, 0, step_ms / 2 * MS, n_kernels, 1)


def found(
    steps: dict[str, float], *, on: str = V100, kernels: dict[str, float] | None = None, noted=None, tapes=None
) -> Paper:
    counts = kernels or {}
    return Paper(
        machine(on) if on in (V100, K80) else named(on),
        {key: split(ms, counts.get(key, 10.0)) for key, ms in steps.items()},
        tapes or {},
        {},
        {},
        noted or {},
    )


def named(name: str):
    from gpututor.lookup import machine_named

    return machine_named(name)


def depthwise(batch=1, channels=8, side=4, direction="fprop"):
    moved = 2 * 2 * batch * channels * side * side
    return Conv("c", direction, batch, channels, channels, side**2, side**2, 9, moved, channels, "fp16")


def whole(batch=1, c=8, side=4, taps=9):
    return Conv("c", "fprop", batch, c, c, side**2, side**2, taps, 4 * batch * c * side**2, 1, "fp16")


def op(*kernels, name="aten.convolution.default", phase="forward"):
    return TapeOp(name, HostKind.CUDNN, phase, kernels)


@pytest.fixture
def step(tmp_path) -> Path:
    """Two equal steps: a depthwise convolution, a 1x1 one, a 3x3 one whose gradient follows, a norm and a sum."""
    once = [
        BeginStep(),
        op(depthwise()),
        op(whole(taps=1)),
        op(whole()),
        op(Stream("n", 512, 128), name="aten.native_batch_norm.default"),
        op(Stream("s", 256, 128), name="aten.add.Tensor"),
        op(whole(), phase="backward", name="aten.convolution_backward.default"),
    ]
    path = tmp_path / "step.tape.gz"
    tape_file.save(Tape("a step", [*once, *once, EndRun()]), path)
    return path


def test_each_kernel_is_of_the_kind_that_its_shape_says(step):
    kinds = by_kind(step, machine(V100))

    assert set(kinds) == {Kind.DEPTHWISE, Kind.POINTWISE, Kind.SPATIAL, Kind.NORM, Kind.REST}
    assert kinds[Kind.DEPTHWISE].flop == 2 * 16 * 8 * 9  # two FLOP for each of 16 points, 8 channels, 9 weights
    assert kinds[Kind.SPATIAL].flop == 2 * (2 * 16 * 8 * 9 * 8)  # forward and one gradient, 8 channels in
    assert kinds[Kind.NORM].moved_bytes == 512
    assert kinds[Kind.REST].flop == 0


def test_a_depthwise_convolution_in_halves_has_four_and_a_half_flop_a_byte(step):
    assert by_kind(step, machine(V100))[Kind.DEPTHWISE].intensity == 4.5


def test_papers_count_the_forward_pass_alone(step):
    assert forward_flop(step) == 2 * 16 * 8 * (9 + 8 + 72)


def test_a_product_is_no_convolution():
    assert kind_of(op(), Gemm("g", 2, 2, 2, 24)) is Kind.PRODUCT


# --- the question and the batch --------------------------------------------------------------------------------------


def test_the_question_is_decided_by_the_two_steps():
    steps = {train_key(Net.RESNET50): 30.0, train_key(Net.EFFICIENTNET): 15.0}

    assert found(steps).outcome == 2.0
    assert found({train_key(Net.RESNET50): 30.0}).outcome is None


def pace(few: float, many: float) -> Paper:
    """EfficientNet's steps, where ResNet-50's take 10 ms each."""
    steps = {train_key(net, n): 10.0 for net in Net for n in BATCHES}
    steps |= {train_key(Net.EFFICIENTNET, BATCHES[0]): few, train_key(Net.EFFICIENTNET, BATCHES[-1]): many}
    kernels = {train_key(Net.EFFICIENTNET, BATCHES[0]): 1000.0, train_key(Net.RESNET50, BATCHES[0]): 600.0}
    return found(steps, kernels=kernels)


@pytest.mark.parametrize(
    ("few", "many", "says"),
    [
        (20.0, 5.0, ("is slower, at 50\u00a0% of the pace", "With 256 it is 2.0 times as fast")),
        (10.0, 10.0, ("is no faster", "With 256 it is no faster")),
        (5.0, 20.0, ("2.0 times as fast: it launches 1,000 kernels, ResNet-50 600", "slower, at 50\u00a0%")),
    ],
)
def test_the_curves_sentence_turns_with_both_ends(few, many, says):
    said = pace(few, many).curve_said

    assert all(part in said for part in says), said


def test_a_batch_counts_once_every_network_was_run_at_it():
    steps = {train_key(net, n): 1.0 for net in Net for n in BATCHES[:2]}
    del steps[train_key(Net.MOBILENET, BATCHES[1])]

    assert found(steps).batches == [BATCHES[0]]


# --- orders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last_ms", "says"), [(5.0, "MobileNet V2 gains most here, and becomes 2.0 times"), (10.0, "changes nothing")]
)
def test_the_order_of_channels_is_praised_where_it_helps(last_ms, says):
    steps = {train_key(net, order=order): 10.0 for net in Net for order in Order}
    steps[train_key(Net.MOBILENET, order=Order.FP16_LAST)] = last_ms

    assert says in found(steps).order_said


# --- smaller ones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "verdict"), [(1.3, "helps"), (1.0, "helps on paper only"), (0.8, "is slower")])
def test_the_clock_judges_a_way_to_make_a_network_smaller(times, verdict):
    assert figures.judged(times) == verdict


@pytest.mark.parametrize(("on", "has"), [(V100, False), (A100, True), ("H100-SXM", True), (K80, False)])
def test_sparse_tensor_cores_came_with_ampere(on, has):
    assert found({}, on=on).has_sparse_cores is has


def test_what_isnt_nvidias_has_no_capability_and_no_such_units():
    other = found({}, on="MI300X")

    assert not other.has_sparse_cores
    assert not other.multiplies_bytes


def test_two_of_four_is_bounded_by_what_products_of_linear_layers_take(tmp_path):
    path = tmp_path / "one.tape.gz"
    product = Gemm("g", 8192, 8192, 8192, 3 * 2 * 8192**2, "fp16")
    tape_file.save(Tape("", [BeginStep(), op(product), EndRun()]), path)

    assert found({}, on=A100, tapes={"one": path}).pattern_at_best("one") == pytest.approx(2)
    assert found({}, on=V100, tapes={"one": path}).pattern_at_best("one") == 1.0


def bytes_found(halves: float, compiled: float, int8: float, joined: float, on: str = A100) -> Paper:
    steps = dict(zip(map(bytes_key, Bytes), (halves, compiled, int8, joined), strict=True))
    return found(steps, on=on, kernels={bytes_key(Bytes.INT8): 50.0})


def test_int8_is_told_as_slow_as_it_is():
    said = bytes_found(10, 10, 20, 5).bytes_said

    assert "5.0 times as many kernels: it is slower, at 50\u00a0% of the pace" in said
    assert "and it is 2.0 times as fast" in said


def test_on_a_card_without_a_unit_for_bytes_nothing_is_promised():
    assert "multiplies no bytes" in bytes_found(10, 10, 5, 5, on=K80).bytes_said
    assert not bytes_found(10, 10, 5, 5, on=K80).multiplies_bytes


def test_zeros_count_as_before_and_half_the_channels_as_less():
    steps = {slim_key(slim, n): 10.0 for slim in Slim for n in (ASKED_BATCH, 1)}
    steps[slim_key(Slim.HALVED)] = 5.0

    assert found(steps).slim_times(Slim.ZEROS) == 1
    assert found(steps).slim_times(Slim.HALVED) == 2


# --- digits ----------------------------------------------------------------------------------------------------------


def test_what_is_lost_is_told_once_every_way_was_run():
    told = {"accuracy": 0.95, "at_once": 0.9, "multiplications": 1e6, "weights": 1e4, "zero_share": 0.0}
    noted = {learned_key(way): told for way in Way}
    noted[learned_key(Way.ZEROS)] = {**told, "at_once": 0.1, "accuracy": 0.85}
    said = found(dict.fromkeys(noted, 1.0), noted=noted).digits_said.replace("\u00a0", " ")

    assert "nine of ten weights zero leave 10 %" in said
    assert "none reads fewer than 85 %" in said
    assert "8 bits leave 90 %" in said
    del noted[learned_key(Way.BITS)]
    assert found(dict.fromkeys(noted, 1.0), noted=noted).digits_said == ""


# --- with little or nothing ------------------------------------------------------------------------------------------


def test_without_a_run_there_is_nothing_and_no_figure_fails():
    nothing = paper_of(Kept(), machine(V100))
    others = Everywhere({name: paper_of(Kept(), named(name)) for name in OTHERS})

    assert not any((nothing.asked, nothing.ordered, nothing.slimmed, nothing.bytes_run, nothing.ways))
    assert nothing.outcome is None
    assert figures.orders(nothing) is figures.slimmed(nothing) is figures.transformer(nothing) is None
    assert figures.digits(nothing) is cards_figure(others) is None


def test_cards_are_compared_from_the_oldest_to_the_newest():
    capabilities = [float(named(name).card.compute_capability) for name in CARDS]

    assert capabilities == sorted(capabilities)


def test_the_questions_picture_says_what_it_shows():
    assert re.search('role="img" aria-label="The arithmetic of ResNet-50, a tenth of it', figures.question_picture())
