"""What the page of lesson 11 says: its sentences follow the numbers, whichever way a machine turns them."""

from __future__ import annotations

import re

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.experiments.fewer_bits import (
    ASKED_BATCH,
    MORE_TEXTS,
    N_TEXTS,
    PADDED_WORDS,
    WAYS,
    WORDS,
    learned_key,
    no_wait_key,
    small_key,
    texts_key,
)
from gpututor.experiments.formats import Format
from gpututor.experiments.per_op import HostSplit
from gpututor.lookup import machine_named
from gpututor.page.kept import Kept
from gpututor.page.lessons import bits_elsewhere
from gpututor.page.lessons import bits_figures as figures
from gpututor.page.lessons.bits import GIB, JOBS, SMOOTH, Bits, bits_of, key_of

MS = 1e6


def split(step_ms: float, host_ms: float = 0.0, n_kernels: float = 10.0) -> HostSplit:
    return HostSplit(step_ms * MS, host_ms * MS, 0, 0, 0, 0, step_ms / 2 * MS, n_kernels, 1)


def found(
    steps: dict[str, float | HostSplit],
    memory_gib: dict[str, float] | None = None,
    on: str = DEFAULT_MACHINE,
    **learning: object,
) -> Bits:
    splits = {key: each if isinstance(each, HostSplit) else split(each) for key, each in steps.items()}
    memory = {key: round(gib * GIB) for key, gib in (memory_gib or {}).items()}
    return Bits(
        machine_named(on),
        splits,
        learning.get("losses", {}),
        learning.get("held", {}),
        learning.get("noted", {}),
        memory,
    )


def three(resnet20: float, resnet50: float, gpt2: float) -> dict[str, float]:
    """A step of each of the three jobs in fp16 and the other formats, where fp32 takes 10 ms."""
    times = {"resnet20": resnet20, "resnet50": resnet50, "gpt2": gpt2}
    return {key_of(job, each): 10 if each is Format.FP32 else ms for job, ms in times.items() for each in Format}


def over(times: dict[int, tuple[float, float]]) -> dict[str, float]:
    """ResNet-20's steps by batch, in fp32 and in the other formats."""
    return {small_key(f, n): pair[f is not Format.FP32] for n, pair in times.items() for f in Format}


def learned(**ends: float) -> Bits:
    keys = {way: learned_key(way) for way in WAYS}
    held = dict.fromkeys(keys.values(), 0.6) | {
        learned_key(way): end for way, end in zip(WAYS, ends.values(), strict=False)
    }
    noted = {key: {"zero_share": 0.4} for key in keys.values()}
    noted[learned_key("fp16, not scaled")] = {"zero_share": 0.9}
    noted[learned_key("fp16, scale far too high")] |= {"skipped": 21.0, "scale": 4.0}
    losses = {key: tuple(3 - 2.5 * k / 63 for k in range(64)) for key in keys.values()}
    return found(dict.fromkeys(keys.values(), 1.0), losses=losses, held=held, noted=noted)


# --- the question ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "n"), [((12, 5, 3), 2), ((9, 5, 3), 3), ((12, 11, 10), 0), ((12, 9.9, 3), 1)], ids=str
)
def test_the_question_is_decided_by_how_many_steps_got_shorter(steps, n):
    assert found(three(*steps)).n_sooner == n


def test_with_a_job_missing_the_question_is_open():
    steps = {key: ms for key, ms in three(12, 5, 3).items() if not key.startswith("gpt2")}

    assert found(steps).n_sooner is None


def test_each_job_is_told_as_faster_slower_or_the_same():
    said = found(three(12, 5, 10)).sooner_said

    assert said == "ResNet-20 takes 20\u00a0% longer; ResNet-50 is 2.0 times as fast; GPT-2 takes as long as before"


# --- over the batch --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({32: (10, 12), 2048: (100, 50)}, "With 32 pictures fp16 takes 20\u00a0% longer. With 2,048 it is 2.0 times"),
        ({32: (10, 10), 2048: (100, 50)}, "With 32 pictures fp16 takes as long."),
        ({32: (10, 8), 2048: (100, 50)}, "pays from 32 pictures on"),
        ({32: (10, 12), 2048: (100, 100)}, "pays at no batch"),
    ],
)
def test_where_fp16_pays_is_told_whichever_way_it_turns(times, said):
    assert said in found(over(times)).curve_said


def test_a_batch_counts_once_every_format_was_run():
    steps = over({32: (10, 12), 128: (10, 12)})
    del steps[small_key(Format.TF32, 128)]

    assert found(steps).batches == [32]
    assert found(steps).ends is None


def test_lines_are_how_many_times_as_fast_as_fp32():
    lines = found(over({32: (10, 20), 2048: (100, 50)})).lines()

    assert set(lines) == {"TF32", "fp16", "bf16"}
    assert lines["fp16"] == [(32, 0.5), (2048, 2.0)]


def test_the_ends_are_the_fewest_pictures_and_the_most():
    assert found(over({32: (10, 12), 128: (20, 15), 2048: (100, 50)})).ends == ((10e6, 12e6), (100e6, 50e6), 2048)


def test_what_the_host_pays_is_told_in_kernels_and_time():
    plain, half = split(10, 6, 200), split(12, 9, 259)
    said = found({small_key(Format.FP32, ASKED_BATCH): plain, small_key(Format.FP16, ASKED_BATCH): half}).why_said

    assert "59 kernels more, 259 in all" in said
    assert "from 6.00\u00a0ms to 9.00\u00a0ms" in said


@pytest.mark.parametrize(("fused", "said"), [(10.0, "nobody waits"), (12.0, "changes little")])
def test_what_a_fused_optimizer_spares_is_told_either_way(fused, said):
    bits = found({no_wait_key(): fused, small_key(Format.FP16, ASKED_BATCH): 12.0})

    assert said in bits.no_wait_said
    assert found({}).no_wait_said == ""


# --- words and memory ------------------------------------------------------------------------------------------------


def padded(gain: float) -> dict[str, float]:
    steps = {texts_key(each): 10.0 for each in Format} | {texts_key(each, words=PADDED_WORDS): 10.0 for each in Format}
    return steps | {texts_key(Format.FP16): 10 * gain, f"compiled-{WORDS}": 11.0, f"compiled-{PADDED_WORDS}": 10.0}


@pytest.mark.parametrize(("gain", "said"), [(1.2, "20\u00a0% faster for it in fp16"), (1.0, "brings nothing")])
def test_what_padding_brings_is_told_either_way(gain, said):
    bits = found(padded(gain))

    assert said in bits.padding_said(bits)
    assert "about 25\u00a0% on an A100, compiled; simulated that is 10\u00a0%" in bits.padding_said(bits)
    assert "simulated that" not in bits.padding_said(found({}))


def texts(plain: tuple[float, ...], half: tuple[float, ...], on: str = DEFAULT_MACHINE) -> Bits:
    counts = (N_TEXTS, *MORE_TEXTS)
    memory = {texts_key(Format.FP32, n): gib for n, gib in zip(counts, plain, strict=True)}
    memory |= {texts_key(Format.FP16, n): gib for n, gib in zip(counts, half, strict=True)}
    memory |= {key_of("resnet50", Format.FP32): 4.0, key_of("resnet50", Format.FP16): 2.0}
    rates = {key: n * (2.0 if n == N_TEXTS else 1.0) for n in counts for key in memory if key.endswith(f"-{n}-{WORDS}")}
    return found(rates, memory, on)


@pytest.mark.parametrize(
    ("plain", "half", "said"),
    [
        ((6, 10, 20), (5, 8, 14), "16 texts fit instead of 8, which is 0"),
        ((10, 20, 40), (8, 14, 28), "8 texts fit instead of 4, which is 100\u00a0% more words"),
        ((6, 10, 14), (5, 8, 12), "All of these batches fit here in both"),
        ((20, 30, 40), (15, 25, 35), "In fp32 not even 4 texts fit here, in fp16 4 do"),
        ((20, 30, 40), (17, 25, 35), "stay in fp32."),
    ],
)
def test_what_the_freed_memory_is_good_for_follows_the_card(plain, half, said):
    bits = texts(plain, half)

    assert said in bits.memory_said
    assert "ResNet-50 takes 50\u00a0% less" in bits.memory_said


def test_a_batch_that_does_not_fit_has_no_rate():
    rows = figures.memory(texts((6, 10, 20), (5, 8, 14))).text.split("<tr")

    assert [("does not fit" in row) for row in rows if "16 texts" in row] == [True, False]


# --- learning --------------------------------------------------------------------------------------------------------


def test_the_same_loss_is_called_the_same_and_a_worse_one_is_not():
    assert "0.600: the same." in learned(fp32=0.6, bf16=0.6, scaled=0.6, raw=0.9, high=0.65).learned_said
    assert "not quite the same" in learned(fp32=0.6, bf16=0.7, scaled=0.6, raw=0.9, high=0.65).learned_said


def test_what_becomes_of_a_wrong_scale_is_told_with_its_numbers():
    said = learned(fp32=0.6, bf16=0.6, scaled=0.6, raw=0.9, high=0.65).learned_said

    assert "Without a scale it is 0.900" in said
    assert "90\u00a0% of the gradients are exactly nothing, where in fp32 40\u00a0% are" in said
    assert "left out 21 steps" in said


def test_stopped_before_all_have_learned_nothing_is_said():
    assert found({learned_key("fp32"): 1.0}).learned_said == ""


def test_lines_begin_where_losses_are_low_enough_to_compare():
    lines = learned().learning_lines()

    assert "bf16" not in lines
    assert all(mean <= 1.5 for pairs in lines.values() for _, mean in pairs)
    assert all(k >= SMOOTH - 1 for pairs in lines.values() for k, _ in pairs)


# --- figures ---------------------------------------------------------------------------------------------------------


def test_a_format_has_a_unit_where_the_card_has_cores_for_it():
    def units(name: str) -> list[str]:
        return [each.value for each in Format if figures.has_unit(found({}, on=name), each)]

    assert units("p2.xlarge") == units("P100-SXM2") == []
    assert units("p3.2xlarge") == units("g4dn.xlarge") == ["fp16"]
    assert units("A100-SXM4-80GB") == units("H100-SXM") == ["TF32", "fp16", "bf16"]


def test_the_bits_of_each_format_add_up_to_its_size():
    sizes = {e: 1 + figures.EXPONENT_BITS[e] + figures.FRACTION_BITS[e] for e in Format}

    assert sizes == {Format.FP32: 32, Format.TF32: 19, Format.FP16: 16, Format.BF16: 16}
    assert figures.question_picture().count('<i style="display:block') == sum(sizes.values())


def test_the_limits_of_halves_are_torchs():
    torch = pytest.importorskip("torch")

    assert figures.most(Format.FP16) == torch.finfo(torch.float16).max
    assert figures.least(Format.FP16) == torch.finfo(torch.float16).smallest_normal * torch.finfo(torch.float16).eps
    assert figures.most(Format.BF16) == torch.finfo(torch.bfloat16).max


def test_the_three_jobs_are_told_in_every_format():
    text = figures.jobs(found(three(12, 5, 3)), "").text
    rows = [re.sub(r"<[^>]+>", "|", row) for row in text.split("<tr")[1:]]

    assert len(rows) == 1 + len(JOBS)
    assert "0.83" in rows[1]
    assert "2.00" in rows[2]
    assert "3.33" in rows[3]


def test_a_thread_that_was_not_run_has_no_ratio():
    nothing = found({})
    rows = bits_elsewhere.threads(nothing, dict.fromkeys(bits_elsewhere.OTHERS, nothing))

    assert {ratio for _, ratio in rows} == {None}
    assert len(rows) == 8


def test_figures_of_what_was_not_run_are_left_out():
    nothing = found({})

    assert figures.words(nothing) is None
    assert figures.memory(nothing) is None
    assert figures.elsewhere(nothing, {}) is None


def test_without_a_run_nothing_was_found():
    bits = bits_of(Kept(), machine(DEFAULT_MACHINE))

    assert (bits.n_sooner, bits.batches, bits.ways, bits.ends) == (None, [], [], None)
