"""GPUs, hosts and the machines that join them, with their prices: read from the tables in data/."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from gpututor.errors import CardNotKnown, HostNotKnown, MachineNotKnown, NotKnown
from gpututor.hardware import FORMATS, Card, Host, Machine
from gpututor.paths import data_dir
from gpututor.tables import Entry, named, read_table

__all__ = [
    "DEFAULT_MACHINE",
    "Card",
    "Host",
    "Machine",
    "card",
    "cards",
    "find_card",
    "host",
    "hosts",
    "machine",
    "machine_for",
    "machines",
    "scaled",
]

DEFAULT_MACHINE = "p3.2xlarge"
NO_PRICE = "no price"
OF_THE_LINK = "copy_latency"
GIB, MIB, KIB = 2**30, 2**20, 2**10

_CAPABILITY_FIELDS = ("fp32_cores_per_sm", "smem_kib_per_sm", "max_warps_per_sm", "max_blocks_per_sm")
_CARD_FIELDS = frozenset(
    "name architecture compute_capability n_sms boost_clock_mhz peak_tflops memory_gib memory_type bandwidth_gb_per_s "
    "l2_mib tdp_w pcie_gen pcie_lanes nvlink_gb_per_s sustained bandwidth_share sheet confirmed sources note "
    "aliases driver_names".split()
)
_HOST_FIELDS = frozenset("name cpu n_cpus note times pinned_bytes_per_s pageable_bytes_per_s sync_us sources".split())
_MACHINE_FIELDS = frozenset("name provider card n_cards host usd_per_hour price_basis sources note".split())


def cards() -> dict[str, Card]:
    """Every card of data/cards.toml by name, in the order of the table.

    Raises:
        DataFileError: the table is damaged.
    """
    return dict(_card_table()[0])


def card(name: str) -> Card:
    """The card of this name; upper and lower case are the same, and "V100" or "A100" mean the commonest form.

    Raises:
        CardNotKnown: no card has this name; the message lists near matches.
    """
    by_name, other_names = _card_table()
    return _pick(name, by_name, CardNotKnown, "card", other_names.get(_key(name)))


def find_card(driver_name: str) -> Card | None:
    """The card that a driver calls by this name, or None where we have no table entry for it.

    >>> find_card("Tesla V100-SXM2-16GB").name, find_card("NVIDIA A100-SXM4-80GB").name, find_card("GeForce 256")
    ('V100-SXM2-16GB', 'A100-SXM4-80GB', None)
    """
    by_name, other_names = _card_table()
    found = other_names.get(_key(driver_name))
    return by_name[found] if found else None


def hosts() -> dict[str, Host]:
    """Every host of data/hosts.toml by name.

    Raises:
        DataFileError: the table is damaged.
    """
    return dict(_host_table())


def host(name: str) -> Host:
    """The host of this name.

    Raises:
        HostNotKnown: no host has this name; the message lists near matches.
    """
    return _pick(name, _host_table(), HostNotKnown, "host")


def machines() -> dict[str, Machine]:
    """Every machine of data/machines.toml by name.

    Raises:
        DataFileError: the table is damaged, or names a card or host that isn't in its own table.
    """
    return dict(_machine_table()[0])


def machine(name: str) -> Machine:
    """The machine of this name, such as "p3.2xlarge"; the names that `machine_for` makes up are known too.

    Raises:
        MachineNotKnown: no machine has this name; the message lists near matches.
    """
    table = _machine_table()[0]
    made_up = {m.name: m for m in map(machine_for, cards())} if name not in table else {}
    return made_up[name] if name in made_up else _pick(name, table, MachineNotKnown, "machine")


def machine_for(card_name: str) -> Machine:
    """A machine with one card of this name.

    The cheapest that is rented with one card; else one card's part of a larger machine, at its part of the
    price; else a server of the card's generation, without a price.

    Raises:
        CardNotKnown: no card has this name.

    >>> machine_for("T4").name, machine_for("H100").name, machine_for("A40").usd_per_hour
    ('g4dn.xlarge', 'one card of p5.48xlarge', None)
    """
    wanted = card(card_name)
    by_name, generic_hosts = _machine_table()
    having = [m for m in by_name.values() if m.card.name == wanted.name]
    if not having:
        server = generic_hosts[wanted.pcie_gen]
        return Machine(f"own {wanted.name} server", "own", wanted, 1, server, None, NO_PRICE, {})
    best = min(having, key=lambda m: (m.n_cards > 1, m.usd_per_card_hour is None, m.usd_per_card_hour or 0))
    if best.n_cards == 1:
        return best
    return replace(
        best,
        name=f"one card of {best.name}",
        n_cards=1,
        usd_per_hour=best.usd_per_card_hour,
        price_basis=f"1/{best.n_cards} of: {best.price_basis}",
    )


_T = TypeVar("_T")


def _pick(
    name: str,
    table: Mapping[str, _T],
    not_known: Callable[[str, str, Iterable[str]], NotKnown],
    kind: str,
    other: str | None = None,
) -> _T:
    """The entry called `name` (or `other`), upper and lower case alike."""
    folded = {key.casefold(): value for key, value in table.items()}
    if name.strip().casefold() in folded:
        return folded[name.strip().casefold()]
    if other is not None:
        return table[other]
    raise not_known(kind, name, table)


def _key(name: str) -> str:
    """A card's name without maker, brand, spaces and hyphens: drivers changed all of these over the years."""
    plain = re.sub(r"\b(nvidia|tesla|geforce|amd|instinct)\b", " ", name.casefold())
    return re.sub(r"[\s_-]+", "", plain)


@cache
def _card_table() -> tuple[Mapping[str, Card], Mapping[str, str]]:
    """All cards by name, and the card's name by each other name (alias or driver's name)."""
    table = read_table(data_dir() / "cards.toml")
    limits = dict(named(table, "capability"))
    by_name: dict[str, Card] = {}
    other_names: dict[str, str] = {}
    for name, entry in named(table, "card"):
        by_name[name] = _read_card(name, entry, limits, table.inner("typical"))
        for other in (name, *entry.texts("aliases"), *entry.texts("driver_names")):
            if other_names.setdefault(_key(other), name) != name:
                raise entry.refuse("aliases", f'"{other}" already stands for {other_names[_key(other)]}')
    return MappingProxyType(by_name), MappingProxyType(other_names)


def _read_card(name: str, entry: Entry, limits: Mapping[str, Entry], typical: Entry) -> Card:
    entry.only(_CARD_FIELDS)
    capability = entry.text("compute_capability")
    if capability not in limits:
        raise entry.refuse("compute_capability", f"is {capability}, which has no [capability] table")
    limit = limits[capability]
    peak_flop_per_s = {f: 1e12 * rate for f, rate in entry.numbers("peak_tflops").items()}
    for number_format in peak_flop_per_s:
        if number_format not in FORMATS:
            raise entry.refuse("peak_tflops", f"names {number_format}; the formats are {', '.join(FORMATS)}")
    if "fp32" not in peak_flop_per_s:
        raise entry.refuse("peak_tflops", "lacks fp32, which every card has")
    own, usual = entry.inner("sustained"), typical.inner("sustained")
    for number_format in own.fields:
        if number_format not in peak_flop_per_s:
            raise entry.refuse("sustained", f"names {number_format}, a format without a peak rate")
    sustained = {f: (own if f in own.fields else usual).share(f) for f in peak_flop_per_s}
    nvlink = entry.maybe_number("nvlink_gb_per_s")
    return Card(
        name=name,
        architecture=entry.text("architecture"),
        compute_capability=capability,
        n_sms=entry.count("n_sms"),
        fp32_cores_per_sm=limit.count("fp32_cores_per_sm"),
        boost_clock_hz=1e6 * entry.number("boost_clock_mhz"),
        peak_flop_per_s=MappingProxyType(peak_flop_per_s),
        memory_bytes=GIB * entry.count("memory_gib"),
        memory_type=entry.text("memory_type"),
        bandwidth_bytes_per_s=1e9 * entry.number("bandwidth_gb_per_s"),
        l2_bytes=round(MIB * entry.number("l2_mib")),
        smem_bytes_per_sm=KIB * limit.count("smem_kib_per_sm"),
        max_warps_per_sm=limit.count("max_warps_per_sm"),
        max_blocks_per_sm=limit.maybe_count("max_blocks_per_sm"),
        tdp_w=entry.number("tdp_w"),
        pcie_gen=entry.count("pcie_gen"),
        pcie_lanes=entry.count("pcie_lanes"),
        nvlink_bytes_per_s=None if nvlink is None else 1e9 * nvlink,
        sustained=MappingProxyType(sustained),
        bandwidth_share=entry.share("bandwidth_share"),
        sources=MappingProxyType(_card_sources(entry, limit, typical, sustained)),
        note=entry.text("note", ""),
    )


def _card_sources(entry: Entry, limit: Entry, typical: Entry, sustained: Mapping[str, float]) -> dict[str, str]:
    """The source of every figure: its own, else the data sheet's with what confirms it."""
    own, confirmed, sheet = entry.words("sources"), entry.words("confirmed"), entry.text("sheet")
    figures = "n_sms boost_clock_mhz memory_gib bandwidth_gb_per_s l2_mib tdp_w pcie_gen pcie_lanes".split()
    figures += [f"peak_tflops.{f}" for f in entry.numbers("peak_tflops")]
    figures += ["nvlink_gb_per_s"] if "nvlink_gb_per_s" in entry.fields else []
    sources = dict.fromkeys(figures, f"{sheet}; not confirmed by a public file")
    sources |= {figure: f"{sheet}; agrees with {public}" for figure, public in confirmed.items()}
    sources |= dict.fromkeys(_CAPABILITY_FIELDS, limit.text("source"))
    sources |= {f"sustained.{f}": typical.text("source") for f in sustained}
    sources["bandwidth_share"] = typical.text("bandwidth_source")
    unknown = (set(own) | set(confirmed)) - set(sources)
    if unknown:
        raise entry.refuse("sources", f"names {', '.join(sorted(unknown))}, which is no figure of this card")
    return sources | dict(own)


@cache
def _host_table() -> Mapping[str, Host]:
    table = read_table(data_dir() / "hosts.toml")
    usual = table.numbers("costs", zero=True)
    return MappingProxyType({name: _read_host(name, entry, usual) for name, entry in named(table, "host")})


def scaled(costs: Mapping[str, float], times: float) -> Mapping[str, float]:
    """Host costs with everything the processor does `times` as long; the link's own latency stays."""
    return MappingProxyType({name: us if name == OF_THE_LINK else us * times for name, us in costs.items()})


def _read_host(name: str, entry: Entry, usual: Mapping[str, float]) -> Host:
    entry.only(_HOST_FIELDS)
    return Host(
        name=name,
        cpu=entry.text("cpu"),
        n_cpus=entry.count("n_cpus"),
        costs=scaled(usual, entry.number("times")),
        pinned_bytes_per_s=entry.number("pinned_bytes_per_s"),
        pageable_bytes_per_s=entry.number("pageable_bytes_per_s"),
        sync_us=entry.number("sync_us", zero=True),
        sources=entry.words("sources"),
        note=entry.text("note", ""),
    )


@cache
def _machine_table() -> tuple[Mapping[str, Machine], Mapping[int, Host]]:
    """All machines by name, and the host that stands for a server with cards of this PCIe generation."""
    table = read_table(data_dir() / "machines.toml")
    by_name = {name: _read_machine(name, entry) for name, entry in named(table, "machine")}
    servers = table.inner("generic_hosts")
    generations = sorted({c.pcie_gen for c in _card_table()[0].values()})
    generic_hosts = {generation: _named_host(servers, f"pcie{generation}") for generation in generations}
    return MappingProxyType(by_name), MappingProxyType(generic_hosts)


def _named_host(entry: Entry, field: str) -> Host:
    """The host that a field names."""
    if entry.text(field) not in _host_table():
        raise entry.refuse(field, f'is "{entry.text(field)}", which data/hosts.toml does not hold')
    return _host_table()[entry.text(field)]


def _read_machine(name: str, entry: Entry) -> Machine:
    entry.only(_MACHINE_FIELDS)
    by_card = _card_table()[0]
    if entry.text("card") not in by_card:
        raise entry.refuse("card", f'is "{entry.text("card")}", which data/cards.toml does not hold')
    return Machine(
        name=name,
        provider=entry.text("provider"),
        card=by_card[entry.text("card")],
        n_cards=entry.count("n_cards"),
        host=_named_host(entry, "host"),
        usd_per_hour=entry.maybe_number("usd_per_hour"),
        price_basis=entry.text("price_basis", NO_PRICE),
        sources=entry.words("sources"),
        note=entry.text("note", ""),
    )
