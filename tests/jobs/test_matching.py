"""The detector of lesson 9: the cheapest pairing, and three ways to the same loss."""

from __future__ import annotations

import itertools

import pytest
import torch

from gpututor.jobs.matching import MATCHINGS, N_OBJECTS, Detector, cheapest, distances

ways = pytest.mark.parametrize("loss", [loss for _, _, loss in MATCHINGS], ids=[key for key, _, _ in MATCHINGS])


def test_the_pairing_is_the_cheapest_of_all():
    costs = torch.rand(5, N_OBJECTS, N_OBJECTS, generator=torch.Generator().manual_seed(0))
    chosen = cheapest(costs)
    for table, pairs in zip(costs, chosen, strict=True):
        best = min(
            sum(table[guess, place].item() for place, guess in enumerate(order))
            for order in itertools.permutations(range(N_OBJECTS))
        )

        assert sum(table[guess, place].item() for place, guess in enumerate(pairs.tolist())) == pytest.approx(best)


def test_a_distance_is_counted_along_both_axes():
    guesses, objects = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [1.0, 0.0]])

    assert distances(guesses, objects).tolist() == [[7.0, 1.0]]


@ways
def test_each_way_trains_the_same(loss):
    detector = Detector(loss, torch.device("cpu"))
    reference = Detector(MATCHINGS[-1][2], torch.device("cpu"))
    for k in range(2):
        assert float(detector.step(k)) == pytest.approx(float(reference.step(k)), rel=1e-5)


def test_it_learns():
    detector = Detector(MATCHINGS[-1][2], torch.device("cpu"))
    first, *_, last = (float(detector.step(k)) for k in range(60))

    assert last < 0.7 * first
