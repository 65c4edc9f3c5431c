"""ResNet-20 and the network on faint pictures: sizes that were published, data that stay the same."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gpututor.jobs import faint  # noqa: E402 - needs torch
from gpututor.jobs.small_resnet import ResNet20  # noqa: E402


def test_resnet20_has_the_published_number_of_parameters():
    n = sum(each.numel() for each in ResNet20().parameters())

    assert n == pytest.approx(0.27e6, rel=0.02)  # He et al. 2015, table 6


def test_resnet20_has_nineteen_3x3_convolutions():
    sizes = [m.kernel_size for m in ResNet20().modules() if isinstance(m, torch.nn.Conv2d)]

    assert sizes.count((3, 3)) == 19


def test_resnet20_scores_ten_kinds():
    assert ResNet20()(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_clean_pictures_are_in_volts_and_noisy_ones_are_not():
    noisy, clean = faint.pairs(256)

    assert float(clean.square().mean()) == pytest.approx(faint.NOTHING_LEARNED, rel=1e-3)
    assert float(noisy.square().mean()) == pytest.approx(1 + faint.NOISE**2, rel=0.05)


def test_a_seed_gives_the_same_pictures_and_another_seed_others():
    faint.pairs.cache_clear()
    first = faint.pairs(8)[0].clone()
    faint.pairs.cache_clear()

    assert torch.equal(first, faint.pairs(8)[0])
    assert not torch.equal(first, faint.pairs(8, seed=1)[0])
