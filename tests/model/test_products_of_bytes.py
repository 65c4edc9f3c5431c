"""Products of 8-bit numbers: what they move, and at which unit's rate they run on which card."""

from __future__ import annotations

import pytest

from gpututor.cards import card
from gpututor.model.cost import price
from gpututor.model.costs.rates import product_rate
from gpututor.model.lowering import lower
from gpututor.model.spec import Gemm, OpCall, TensorMeta

M, K, N = 4096, 1024, 2048


def product(m=M, k=K, n=N):
    a, b = TensorMeta((m, k), (k, 1), "int8"), TensorMeta((k, n), (1, k), "int8")
    return lower(OpCall("aten._int_mm.default", (a, b), (), (TensorMeta((m, n), (n, 1), "int32"),)))


def halves():
    a, b = TensorMeta((M, K), (K, 1), "float16"), TensorMeta((K, N), (1, K), "float16")
    return lower(OpCall("aten.mm.default", (a, b), (), (TensorMeta((M, N), (N, 1), "float16"),))).kernels[0]


def test_bytes_go_in_and_32_bit_sums_come_out():
    (spec,) = product().kernels

    assert spec.moved_bytes == M * K + K * N + 4 * M * N
    assert (spec.number_format, spec.flop) == ("int8", 2 * M * K * N)


def test_without_anything_to_add_up_sums_are_filled_with_zeros():
    (spec,) = product(k=0).kernels

    assert not isinstance(spec, Gemm)


@pytest.mark.parametrize(
    ("name", "on_tensor_cores"), [("V100-SXM2-16GB", False), ("T4", True), ("A100-SXM4-80GB", True), ("H100-SXM", True)]
)
def test_tensor_cores_multiply_bytes_from_turing_on(name, on_tensor_cores):
    rate = product_rate("int8", False, 16, card(name))

    assert rate.tensor_core is on_tensor_cores
    assert rate.peak_flop_per_s == card(name).peak("int8")


def test_a_card_without_a_unit_for_bytes_multiplies_them_as_fp32():
    rate = product_rate("int8", False, 16, card("P100-SXM2"))

    assert (rate.number_format, rate.tensor_core) == ("fp32", False)


@pytest.mark.parametrize(("name", "sooner"), [("T4", True), ("A100-SXM4-80GB", True), ("V100-SXM2-16GB", False)])
def test_a_large_product_of_bytes_beats_one_of_halves_where_tensor_cores_multiply_bytes(name, sooner):
    on = card(name)

    assert (price(product().kernels[0], on).duration_ns < price(halves(), on).duration_ns) is sooner
