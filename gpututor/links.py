"""Links between the cards of a machine and between machines: read from data/links.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from gpututor.errors import LinkNotKnown
from gpututor.hardware import Card, Machine
from gpututor.paths import data_dir
from gpututor.tables import Entry, named, read_table

_FIELDS = frozenset(
    "name kind peer_access copy_gb_per_s copy_us bus_gb_per_s shared_gb_per_s half_mb start_us hop_us n_blocks "
    "exposed_gb_per_s other_share sources note".split()
)
OLDEST_WITHOUT_PEER_ACCESS = 7.5
"""Compute capability from which GeForce cards have no peer access over PCIe. Source: issues of NVIDIA/nccl."""


@dataclass(frozen=True, slots=True)
class Link:
    """What joins cards, or machines (then the rates are those of one whole machine). Rates are one direction.

    `copy_bytes_per_s` and `copy_us` belong to one copy from card to card; without `peer_access` it goes through
    host memory. `bus_bytes_per_s`, `half_bytes`, `start_us` and `hop_us` are constants of a collective, whose
    kernel takes `n_blocks` SMs. `shared_bytes_per_s` is None where cards don't take bandwidth from each other.
    `exposed_bytes_per_s` and `other_share` are what whole training runs show, overlap included; None for networks.
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
    exposed_bytes_per_s: float | None
    other_share: float | None
    sources: Mapping[str, str]
    note: str = ""

    def bus_of(self, n: int) -> float:
        """Bus rate with `n` cards at it, in bytes per second.

        >>> link("pcie-geforce").bus_of(2) / 1e9, round(link("pcie-geforce").bus_of(8) / 1e9, 2)
        (5.1, 0.62)
        """
        if self.shared_bytes_per_s is None or n <= 2:
            return self.bus_bytes_per_s
        return 1 / (1 / self.bus_bytes_per_s + (n - 2) / self.shared_bytes_per_s)


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
        LinkNotKnown: no link is called `network`.
    """
    _, machines, usual = _tables()
    entry = machines.get(machine.name)
    within = entry.text("cards") if entry else usual[_kind_of(machine.card, machine.n_cards)]
    return Wiring(link(within), link(network or (entry.text("network") if entry else usual["network"])))


def _kind_of(card: Card, n_cards: int) -> str:
    """Which of the usual links joins cards of this kind."""
    geforce = card.name.startswith(("GTX", "RTX", "TITAN"))
    if card.nvlink_bytes_per_s and not geforce and "SXM" in card.name:
        return card.architecture if card.architecture in ("Volta", "Ampere", "Hopper", "Blackwell") else "pascal"
    if geforce:
        return "geforce" if float(card.compute_capability) >= OLDEST_WITHOUT_PEER_ACCESS else "pascal_geforce"
    return "pascal" if float(card.compute_capability) < 7 else "pcie"


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
    shared, exposed = entry.maybe_number("shared_gb_per_s"), entry.maybe_number("exposed_gb_per_s")
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
        exposed_bytes_per_s=None if exposed is None else 1e9 * exposed,
        other_share=entry.maybe_number("other_share"),
        sources=entry.words("sources"),
        note=entry.text("note", ""),
    )
