"""Lesson 11's experiment: what fewer bits bring by card, network and batch, and what is learned with them."""

from __future__ import annotations

import pytest

from gpututor.experiments import fewer_bits as lesson
from gpututor.experiments.fewer_bits import (
    ASKED_BATCH,
    HIGH_SCALE,
    N_LEARNED,
    PADDED_WORDS,
    learned_key,
    photos_key,
    small_key,
    texts_key,
)
from gpututor.experiments.formats import Format
from gpututor.experiments.per_op import host_split
from gpututor.lookup import machine_named
from gpututor.progress import Progress
from gpututor.replay import read_tape

torch = pytest.importorskip("torch")

MACHINES = ("p3.2xlarge", "A100-SXM4-80GB", "g4dn.xlarge")
each_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bits")
    data = lesson.run(Progress(results_dir=folder), batches=(32, ASKED_BATCH, 2048))
    return folder, data["tapes"], {point["key"]: point for point in data["points"]}


@pytest.fixture(scope="module")
def learned(ran):
    return ran[2]


def split(ran, key: str, name: str):
    return host_split(read_tape(ran[0] / ran[1][key]), machine_named(name))


def times(ran, key: str, plain: str, name: str) -> float:
    """How many times as fast one step is as another."""
    return split(ran, plain, name).step_ns / split(ran, key, name).step_ns


# --- time ------------------------------------------------------------------------------------------------------------


@each_machine
def test_with_few_pictures_fp16_is_slower_than_fp32(ran, name):
    assert times(ran, small_key(Format.FP16, 32), small_key(Format.FP32, 32), name) < 0.95


@each_machine
def test_with_many_pictures_it_is_faster(ran, name):
    assert times(ran, small_key(Format.FP16, 2048), small_key(Format.FP32, 2048), name) > 1.4


@each_machine
def test_where_a_card_has_cores_for_fp16_large_networks_gain_twice_and_more(ran, name):
    # pytorch issue 57806: 2.5 times on a V100, ResNet-101
    assert times(ran, photos_key(Format.FP16), photos_key(Format.FP32), name) > 2
    assert times(ran, texts_key(Format.FP16), texts_key(Format.FP32), name) > 3


@pytest.mark.parametrize("name", ["p2.xlarge", "P100-SXM2"])
def test_where_it_has_none_gpt2_gains_nothing(ran, name):
    assert times(ran, texts_key(Format.FP16), texts_key(Format.FP32), name) < 1.02


@pytest.mark.parametrize("number_format", [Format.TF32, Format.BF16])
def test_volta_takes_tf32_and_bf16_and_multiplies_them_as_fp32(ran, number_format):
    gains = times(ran, texts_key(number_format), texts_key(Format.FP32), "p3.2xlarge")

    assert gains == pytest.approx(1, abs=0.02)


def test_ampere_has_cores_for_both(ran):
    assert times(ran, texts_key(Format.TF32), texts_key(Format.FP32), "A100-SXM4-80GB") > 2
    assert times(ran, texts_key(Format.BF16), texts_key(Format.TF32), "A100-SXM4-80GB") > 2


@each_machine
def test_fp16_launches_more_kernels_than_bf16_and_bf16_more_than_fp32(ran, name):
    counts = [
        split(ran, small_key(each, ASKED_BATCH), name).n_kernels for each in (Format.FP32, Format.BF16, Format.FP16)
    ]

    # two casts for each of 22 products' weights at least; then scale, unscale, its check, and the next scale
    assert counts[1] >= counts[0] + 2 * 22
    assert counts[2] >= counts[1] + 4


@each_machine
def test_tf32_launches_what_fp32_launches(ran, name):
    plain, rounded = (split(ran, small_key(each, ASKED_BATCH), name) for each in (Format.FP32, Format.TF32))

    assert (plain.n_kernels, plain.host_ns) == (rounded.n_kernels, rounded.host_ns)


def test_only_the_scaler_waits_and_a_fused_optimizer_spares_the_wait(ran):
    from gpututor.model.tape import CopyCall

    def waits(key: str) -> int:
        entries = read_tape(ran[0] / ran[1][key]).entries
        return sum(type(each) is CopyCall and each.blocking for each in entries)

    assert waits(small_key(Format.FP16, ASKED_BATCH)) == 2  # two steps are kept
    assert [waits(small_key(each, ASKED_BATCH)) for each in (Format.FP32, Format.BF16)] == [0, 0]
    assert waits(lesson.no_wait_key()) == 0


# --- shapes and memory -----------------------------------------------------------------------------------------------


def test_a_padded_vocabulary_helps_where_tensor_cores_multiply(ran):
    def gain(number_format: Format, name: str) -> float:
        return times(ran, texts_key(number_format, words=PADDED_WORDS), texts_key(number_format), name)

    assert gain(Format.FP16, "p3.2xlarge") > 1.05
    assert gain(Format.BF16, "A100-SXM4-80GB") > 1.05
    assert gain(Format.FP32, "A100-SXM4-80GB") == pytest.approx(1, abs=0.005)
    assert gain(Format.BF16, "p3.2xlarge") == pytest.approx(1, abs=0.005)


def test_compiled_it_helps_more_since_there_is_less_beside_it(ran):
    compiled = times(ran, f"compiled-{PADDED_WORDS}", f"compiled-{lesson.WORDS}", "A100-SXM4-80GB")

    assert compiled > times(ran, texts_key(Format.BF16, words=PADDED_WORDS), texts_key(Format.BF16), "A100-SXM4-80GB")


def test_longer_sentences_that_are_a_multiple_of_8_gain_nothing(ran):
    # allennlp pull request 4929, on a Titan V
    assert times(ran, "length-64", "length-61", "p3.2xlarge") < 1.05


def test_one_float64_makes_a_norm_slower(ran):
    assert times(ran, "norm-float32", "norm-float64", "H100-SXM") > 1.3


def test_memory_shrinks_but_not_by_half(ran):
    photos, texts = (
        ran[2][key(Format.FP16)]["memory_bytes"] / ran[2][key(Format.FP32)]["memory_bytes"]
        for key in (photos_key, texts_key)
    )

    assert 0.5 < photos < 0.6
    assert 0.7 < texts < 0.9


def test_sixteen_texts_fit_a_v100_in_fp16_and_not_in_fp32(ran):
    sizes = [ran[2][texts_key(each, 16)]["memory_bytes"] for each in (Format.FP16, Format.FP32)]

    assert sizes[0] < machine_named("p3.2xlarge").card.memory_bytes < sizes[1]


# --- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["bf16", "fp16, scaled"])
def test_with_fewer_bits_it_learns_the_same(learned, way):
    assert learned[learned_key(way)]["held_out"] == pytest.approx(learned["learn-fp32"]["held_out"], rel=0.02)


def test_without_a_scale_gradients_vanish_and_it_learns_worse(learned):
    plain, raw = learned["learn-fp32"], learned[learned_key("fp16, not scaled")]

    assert raw["noted"]["zero_share"] > 1.5 * plain["noted"]["zero_share"]
    assert raw["held_out"] > 1.25 * plain["held_out"]


def test_the_usual_scale_leaves_out_no_step(learned):
    assert learned[learned_key("fp16, scaled")]["noted"]["skipped"] == 0


def test_a_scale_that_begins_far_too_high_is_halved_step_by_step(learned):
    high = learned[learned_key("fp16, scale far too high")]

    assert high["noted"]["skipped"] >= 15
    assert high["noted"]["scale"] == HIGH_SCALE / 2 ** high["noted"]["skipped"]
    first, after = high["losses"][0], high["losses"][int(high["noted"]["skipped"]) + 40]
    assert after < first / 10


def test_what_a_run_leaves_is_a_tape_for_each_variant_and_losses_of_those_that_learn(ran):
    _, tapes, points = ran

    assert set(tapes) == set(points)
    assert {len(points[learned_key(way)]["losses"]) for way in lesson.WAYS} == {N_LEARNED}
    assert points["learn-fp32"]["noted"].keys() == {"zero_share"}
    assert points[small_key(Format.FP16, 32)]["noted"] == {}


def test_on_a_processor_the_smallest_network_alone_is_measured(tmp_path):
    data = lesson.measure(Progress(results_dir=tmp_path), device="cpu", batches=(2, 4))

    assert [point["key"] for point in data["points"]] == [
        small_key(each, n) for n in (2, 4) for each in (Format.FP32, Format.BF16)
    ]
    assert all(point["step_ns"] > 0 for point in data["points"])
