"""Links between the cards of a machine and between machines: read from data/links.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from types import MappingProxyType

from gpututor.errors import LinkNotKnown
from gpututor.hardware import Card, Machine
from gpututor.paths import data_dir
from gpututor.tables import Entry, named, read_table

_FIELDS = frozenset(
    "name kind peer_access copy_gb_per_s copy_us bus_gb_per_s shared_gb_per_s half_mb start_us hop_us n_blocks "
    "busy_share beside_share late_share sources note".split()
)


@dataclass(frozen=True, slots=True)
class Link:
    """What joins cards, or machines (then the rates are those of one whole machine). Rates are one direction.

    `copy_bytes_per_s` and `copy_us` belong to one copy from card to card; without `peer_access` it goes through
    host memory. `bus_bytes_per_s`, `half_bytes`, `start_us` and `hop_us` are constants of a collective, whose
    kernel takes `n_blocks` SMs. `shared_bytes_per_s` is None where cards don't take bandwidth from each other.
    `busy_share` is how much of `bus_bytes_per_s` a collective reaches in a training step, beside other kernels.
    `beside_share` is what other kernels lose of their pace while a collective moves data, beyond its SMs. Cards of one
    kind differ: `late_share` is the spread of their times, of which `late_of` makes what all wait for the slowest.
    """

    name: str
    kind: str
    peer_access: bool
    copy_bytes_per_s: float
    copy_us: float
    bus_bytes_per_s: float
    shared_bytes_per_s: float | None
    half_bytes: float
    start_us: float
    hop_us: float
    n_blocks: int
    busy_share: float
    beside_share: float
    late_share: float
    sources: Mapping[str, str]
    note: str = ""

    def bus_of(self, n: int) -> float:
        """Bus rate with `n` cards at it, in bytes per second.

        >>> switch = link("pcie3-switch")
        >>> switch.bus_of(2) / 1e9, round(switch.bus_of(8) / 1e9, 1)
        (12.3, 8.8)
        """
        if self.shared_bytes_per_s is None or n <= 2:
            return self.bus_bytes_per_s
        return 1 / (1 / self.bus_bytes_per_s + (n - 2) / self.shared_bytes_per_s)

    def busy(self) -> Link:
        """The link as collectives of a training step find it."""
        return self if self.busy_share == 1 else replace(self, bus_bytes_per_s=self.busy_share * self.bus_bytes_per_s)

    def late_of(self, n: int) -> float:
        """By which share of its time the slowest of `n` cards is expected behind the usual one.

        The largest of n normal deviations. Source: Blom 1958, Statistical Estimates and Transformed Beta-Variables.
        """
        return 0.0 if n < 2 else self.late_share * NormalDist().inv_cdf((n - 0.375) / (n + 0.25))


@dataclass(frozen=True, slots=True)
class Wiring:
    """How the cards of a machine are joined, and how machines of this kind are."""

    cards: Link
    network: Link


def links() -> dict[str, Link]:
    """Every link of data/links.toml by name.

    Raises:
        DataFileError: the table is damaged.
    """
    return dict(_tables()[0])


def link(name: str) -> Link:
    """The link of this name.

    Raises:
        LinkNotKnown: no link has this name; the message lists near matches.
    """
    known = _tables()[0]
    if name not in known:
        raise LinkNotKnown("link", name, known)
    return known[name]


def wiring(machine: Machine, network: str | None = None) -> Wiring:
    """The links of a machine; `network` names another one between machines than the usual.

    Raises:
        LinkNotKnown: no link is called `network`, or as the machine says that its cards are joined.
    """
    _, machines, usual = _tables()
    entry = machines.get(machine.name)
    within = machine.joined_by or (entry.text("cards") if entry else usual[_kind_of(machine.card)])
    return Wiring(link(within), link(network or (entry.text("network") if entry else usual["network"])))


_GEFORCE = re.compile(r"(GTX|RTX|TITAN)-(?!A\d|PRO|\d+-Ada)")  # RTX-A6000 and its like are workstation cards


def _kind_of(card: Card) -> str:
    """Which of the usual links joins cards of this kind.

    GeForce cards from RTX 20 on have no peer access over PCIe. Source: issues of NVIDIA/nccl.
    """
    geforce = _GEFORCE.match(card.name) is not None
    if card.nvlink_bytes_per_s and not geforce and "SXM" in card.name:
        return card.architecture if card.architecture in ("Volta", "Ampere", "Hopper", "Blackwell") else "pascal"
    old = card.architecture in ("Kepler", "Maxwell", "Pascal")
    if geforce:
        return "pascal_geforce" if old else "geforce"
    return "pascal" if old else f"pcie{min(5, max(3, card.pcie_gen))}"


@cache
def _tables() -> tuple[Mapping[str, Link], Mapping[str, Entry], Mapping[str, str]]:
    table = read_table(data_dir() / "links.toml")
    return (
        MappingProxyType({name: _read(name, entry) for name, entry in named(table, "link")}),
        MappingProxyType(dict(named(table, "machine"))),
        table.words("usual"),
    )


def _read(name: str, entry: Entry) -> Link:
    entry.only(_FIELDS)
    shared = entry.maybe_number("shared_gb_per_s")
    peer_access = entry.fields.get("peer_access")
    if not isinstance(peer_access, bool):
        raise entry.refuse("peer_access", f"holds {peer_access!r}, where true or false is needed")
    return Link(
        name=name,
        kind=entry.text("kind"),
        peer_access=peer_access,
        copy_bytes_per_s=1e9 * entry.number("copy_gb_per_s"),
        copy_us=entry.number("copy_us"),
        bus_bytes_per_s=1e9 * entry.number("bus_gb_per_s"),
        shared_bytes_per_s=None if shared is None else 1e9 * shared,
        half_bytes=1e6 * entry.number("half_mb", zero=True),
        start_us=entry.number("start_us"),
        hop_us=entry.number("hop_us"),
        n_blocks=entry.count("n_blocks"),
        busy_share=entry.maybe_number("busy_share") or 1.0,
        beside_share=entry.maybe_number("beside_share") or 0.0,
        late_share=entry.maybe_number("late_share") or 0.0,
        sources=entry.words("sources"),
        note=entry.text("note", ""),
    )
