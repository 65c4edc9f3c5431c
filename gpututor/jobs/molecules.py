"""Small made-up molecules and a network that passes messages along their bonds: many tiny kernels for little work.

A molecule is a tree of atoms with one more bond that closes a ring. What is to be learned is a sum over its bonds, of
which each has a value by the kinds of its two atoms; nothing is downloaded, and the same numbers come out everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

N_KINDS = 5  # H, C, N, O, F, as in QM9
N_ATOMS = 18  # of a mean molecule in QM9 (Ramakrishnan et al. 2014)


@dataclass(frozen=True, slots=True)
class Molecules:
    """Several molecules of equal size as one batch: a row an atom, an entry a direction of a bond.

    `kinds` (atoms,), `source` and `target` (two for each bond,) and `molecule` (atoms,) are whole numbers, `wanted`
    (molecules,) is what is to be said of each.
    """

    kinds: Tensor
    source: Tensor
    target: Tensor
    molecule: Tensor
    wanted: Tensor

    def to(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The five tensors there, in the order in which they are named."""
        mine = (self.kinds, self.source, self.target, self.molecule, self.wanted)
        kinds, source, target, molecule, wanted = (each.to(device) for each in mine)
        return kinds, source, target, molecule, wanted


def draw(n: int, seed: int = 0, n_atoms: int = N_ATOMS) -> Molecules:
    """`n` molecules of `n_atoms`, on the CPU; what is wanted of them has mean 0 and deviation about 1.

    >>> some = draw(3, n_atoms=4)
    >>> some.kinds.shape, some.source.shape, some.wanted.shape
    (torch.Size([12]), torch.Size([24]), torch.Size([3]))
    """
    dice = torch.Generator().manual_seed(seed)
    kinds = torch.randint(0, N_KINDS, (n, n_atoms), generator=dice)
    later = torch.arange(1, n_atoms).expand(n, -1)
    earlier = (torch.rand(n, n_atoms - 1, generator=dice) * later).long()
    ring = torch.zeros(n, 1, dtype=torch.long), torch.full((n, 1), n_atoms - 1)
    one, other = torch.cat([later, ring[0]], 1), torch.cat([earlier, ring[1]], 1)
    values = _values_of_bonds()
    wanted = values[kinds.gather(1, one), kinds.gather(1, other)].sum(1) / one.shape[1] ** 0.5
    first = torch.arange(n).view(-1, 1) * n_atoms
    source = torch.cat([one + first, other + first], 1).flatten()
    target = torch.cat([other + first, one + first], 1).flatten()
    return Molecules(kinds.flatten(), source, target, torch.arange(n).repeat_interleave(n_atoms), wanted)


def _values_of_bonds() -> Tensor:
    """A value for each pair of kinds, the same both ways, of mean 0 and deviation 1 over the pairs."""
    values = torch.randn(N_KINDS, N_KINDS, generator=torch.Generator().manual_seed(7))
    values = values + values.T
    return (values - values.mean()) / values.std()


class Round(nn.Module):
    """One round of messages: each atom hears from those it is bound to, and changes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.Linear(2 * width, width)
        self.update = nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, atoms: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """The atoms' new states (atoms, width)."""
        pairs = torch.cat([atoms.index_select(0, source), atoms.index_select(0, target)], 1)
        said = torch.relu(self.message(pairs))
        heard = torch.zeros_like(atoms).index_add(0, target, said)
        changed = torch.relu(self.update(torch.cat([atoms, heard], 1)))
        new: Tensor = self.norm(atoms + changed)
        return new


class MessageNet(nn.Module):
    """A few rounds of messages, then a sum over each molecule's atoms."""

    def __init__(self, width: int = 48, n_rounds: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(N_KINDS, width)
        self.rounds = nn.ModuleList(Round(width) for _ in range(n_rounds))
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        self.scale = N_ATOMS**-0.5  # a sum over so many atoms stays about as large as one of them

    def forward(self, kinds: Tensor, source: Tensor, target: Tensor, molecule: Tensor, like: Tensor) -> Tensor:
        """One number a molecule; `like` only says how many molecules there are."""
        atoms = self.embed(kinds)
        for one in self.rounds:
            atoms = one(atoms, source, target)
        said: Tensor = self.head(atoms).squeeze(1)
        whole: Tensor = torch.zeros_like(like).index_add(0, molecule, said) * self.scale
        return whole
