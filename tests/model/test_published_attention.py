"""Fused attention beside published speeds: 16,384 tokens of width 2,048, in heads of 64 or 128, fp16.

Figures: FlashAttention's README (assets/flash2_a100_fwd_bwd_benchmark.png), Shah et al. 2024, "FlashAttention-3",
figure 5 (forward on an H100), apache/tvm, tl_doc/flash_perf.md (RTX 4090).
"""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest

from gpututor.cards import card
from gpututor.model.cost import price
from gpututor.model.costs.attention import method
from gpututor.model.spec import Attention

TOKENS, WIDTH = 16_384, 2_048
LENGTHS = (512, 1024, 2048, 4096, 8192, 16_384)
FORWARD, BOTH, BACKWARD = (False,), (False, True), (True,)


def attention(length, width, causal=False, backward=False, number_format="fp16"):
    heads = TOKENS // length * (WIDTH // width)
    moved_bytes = 4 * TOKENS * WIDTH * 2 * (2 if backward else 1)
    return Attention("a", heads, length, length, width, moved_bytes, number_format, False, causal, backward)


def tflop_per_s(name, length, width, causal, passes):
    specs = [attention(length, width, causal, backward) for backward in passes]
    return sum(s.flop for s in specs) / sum(price(s, card(name)).duration_ns for s in specs) / 1e3


@pytest.mark.parametrize(
    ("name", "width", "causal", "passes", "published"),
    [
        pytest.param("A100-SXM4-80GB", 64, False, BOTH, (132, 153, 162, 171, 175, 176), id="A100 64"),
        pytest.param("A100-SXM4-80GB", 128, False, BOTH, (151, 173, 187, 196, 201, 203), id="A100 128"),
        pytest.param("A100-SXM4-80GB", 64, True, BOTH, (88, 119, 140, 156, 165, 171), id="A100 64 causal"),
        pytest.param("A100-SXM4-80GB", 128, True, BOTH, (99, 133, 155, 173, 182, 189), id="A100 128 causal"),
        pytest.param("H100-SXM", 64, False, FORWARD, (335, 373, 395, 408, 412, 413), id="H100 64"),
        pytest.param("H100-SXM", 128, False, FORWARD, (495, 574, 617, 609, 600, 595), id="H100 128"),
        pytest.param("H100-SXM", 64, True, FORWARD, (225, 288, 334, 363, 379, 388), id="H100 64 causal"),
        pytest.param("H100-SXM", 128, True, FORWARD, (315, 410, 484, 518, 529, 539), id="H100 128 causal"),
    ],
)
def test_published_speeds_are_met_to_a_tenth(name, width, causal, passes, published):
    ours = [tflop_per_s(name, length, width, causal, passes) for length in LENGTHS]

    assert mean(abs(a / b - 1) for a, b in zip(ours, published, strict=True)) < 0.10


@pytest.mark.parametrize(
    ("causal", "passes", "published"), [(False, FORWARD, 169), (False, BACKWARD, 125), (True, FORWARD, 142)]
)
def test_a_geforce_card_is_met_to_a_fifth(causal, passes, published):
    assert tflop_per_s("RTX-4090", 2048, 64, causal, passes) == pytest.approx(published, rel=0.2)


@pytest.mark.parametrize(
    ("name", "number_format", "kernel", "products"),
    [
        ("H100-SXM", "fp16", "cuDNN", "fp16"),
        ("B200-SXM", "bf16", "cuDNN", "bf16"),
        ("A100-SXM4-80GB", "bf16", "FlashAttention-2", "bf16"),
        ("RTX-5090", "fp16", "FlashAttention-2", "fp16"),
        ("A100-SXM4-80GB", "fp32", "memory-efficient", "tf32"),
        ("T4", "fp16", "memory-efficient", "fp16"),
        ("T4", "fp32", "memory-efficient", "fp32"),
        ("P100-PCIe", "fp16", "memory-efficient", "fp32"),
    ],
)
def test_the_kernel_is_the_one_that_torch_picks(name, number_format, kernel, products):
    how = method(attention(1024, 64, number_format=number_format), card(name))

    assert (how.name, how.rate.number_format) == (kernel, products)


def test_flash_attentions_rate_does_not_grow_with_faster_tensor_cores():
    """Written in Ampere's instructions, it does the same work per clock on a card with twice the rate."""
    a100 = card("A100-SXM4-80GB")
    twice = replace(a100, peak_flop_per_s={f: 2 * rate for f, rate in a100.peak_flop_per_s.items()})

    assert price(attention(4096, 64), twice).duration_ns == price(attention(4096, 64), a100).duration_ns


def test_wider_heads_spend_a_smaller_share_on_the_softmax():
    v100 = card("V100-SXM2-16GB")
    narrow, wide = attention(4096, 64), attention(4096, 128)

    assert narrow.flop == wide.flop
    assert price(wide, v100).duration_ns < price(narrow, v100).duration_ns
