"""The made-up molecules: trees with a ring, values of their bonds, and a network that can learn them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gpututor.jobs.molecules import MessageNet, draw  # noqa: E402


@pytest.fixture
def some():
    return draw(5, n_atoms=7)


def test_each_molecule_is_a_tree_with_one_more_bond(some):
    n_atoms, n_bonds = 7, 7

    assert some.kinds.shape == (5 * n_atoms,)
    assert some.source.shape == (5 * 2 * n_bonds,)


def test_every_bond_goes_both_ways(some):
    there = set(zip(some.source.tolist(), some.target.tolist(), strict=True))

    assert there == {(b, a) for a, b in there}


def test_no_bond_leaves_its_molecule(some):
    assert torch.equal(some.molecule[some.source], some.molecule[some.target])


def test_every_atom_has_a_bond(some):
    assert set(some.source.tolist()) == set(range(35))


def test_the_same_seed_draws_the_same():
    assert torch.equal(draw(3).wanted, draw(3).wanted)
    assert not torch.equal(draw(3).wanted, draw(3, seed=1).wanted)


def test_what_is_wanted_has_mean_0_and_deviation_1_or_so():
    wanted = draw(2000).wanted

    assert abs(wanted.mean()) < 0.5
    assert wanted.std() == pytest.approx(1, rel=0.3)


def test_other_molecules_in_the_batch_change_nothing():
    torch.manual_seed(0)
    net, many = MessageNet(width=8), draw(4, n_atoms=6)
    device = torch.device("cpu")
    kinds, source, target, molecule, wanted = many.to(device)
    first = source < 6
    alone = net(kinds[:6], source[first], target[first], molecule[:6], wanted[:1])

    assert net(kinds, source, target, molecule, wanted)[0].item() == pytest.approx(alone[0].item(), abs=1e-5)
