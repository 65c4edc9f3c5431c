"""Products of float16 on the simulated GPU: summed in float32, rounded once."""

from __future__ import annotations

import pytest
import torch

from gpututor.simgpu import simulated_gpu

F = torch.nn.functional
HALF = torch.float16


@pytest.fixture(autouse=True)
def sim():
    with simulated_gpu() as session:
        yield session


def halves(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape))).half()


PRODUCTS = {
    "mm": (torch.mm, (halves(6, 40), halves(40, 8))),
    "bmm": (torch.bmm, (halves(3, 6, 40), halves(3, 40, 8))),
    "addmm": (torch.addmm, (halves(8), halves(6, 40), halves(40, 8))),
    "baddbmm": (torch.baddbmm, (halves(3, 6, 8), halves(3, 6, 40), halves(3, 40, 8))),
    "convolution": (F.conv2d, (halves(2, 4, 9, 9), halves(6, 4, 3, 3), halves(6))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_of_halves_is_that_of_float32_rounded_once(name):
    op, args = PRODUCTS[name]
    expected = op(*(each.float() for each in args)).half()
    for _ in range(2):  # the second call takes the remembered way
        out = op(*(each.to("simgpu") for each in args))

        assert out.dtype is HALF
        assert torch.equal(out.cpu(), expected)


def test_a_sum_does_not_stop_where_halves_can_count_no_further():
    # halves know no whole number between 2048 and 2050; adding ones in halves stops at 2048
    ones = torch.ones(1, 4096, dtype=HALF, device="simgpu")

    assert float(ones @ ones.t()) == 4096


def test_gradients_of_a_convolution_are_those_of_float32_rounded():
    x, weight = halves(2, 4, 9, 9), halves(6, 4, 3, 3)
    plain = [each.float().requires_grad_() for each in (x, weight)]
    F.conv2d(*plain, padding=1).sum().backward()
    for _ in range(2):
        mine = [each.to("simgpu").requires_grad_() for each in (x, weight)]
        F.conv2d(*mine, padding=1).sum().backward()

        for ours, theirs in zip(mine, plain, strict=True):
            assert ours.grad.dtype is HALF
            assert torch.equal(ours.grad.cpu(), theirs.grad.half())


def test_what_is_too_large_for_halves_becomes_infinite():
    large = torch.full((1, 4), 256.0, dtype=HALF, device="simgpu")

    assert float(large @ large.t()) == float("inf")  # 4 * 65536


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_other_formats_are_left_as_they_are(dtype):
    a, b = torch.randn(5, 7).to(dtype), torch.randn(7, 3).to(dtype)

    assert torch.equal((a.to("simgpu") @ b.to("simgpu")).cpu(), a @ b)
