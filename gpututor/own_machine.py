"""The reader's own machine as `gpututor calibrate` measured it: a small file beside their progress.

Machines made from it are called "here" (with the card that was measured) and "T4 here" (a T4 put into this computer).
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from gpututor.cards import Card, Host, Machine, card, cards, find_card, machine_for, scaled
from gpututor.errors import CalibrationDamaged, CardNotKnown, DataFileError, NotCalibrated
from gpututor.paths import data_dir, home
from gpututor.tables import Entry, read_table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = "here"
FORMAT, VERSION = "gpututor-calibration", 1
FILE = "calibration.toml"


@dataclass(frozen=True, slots=True)
class OwnHost:
    """This computer's processor: its costs are those of data/hosts.toml's [costs] `times` as long.

    `error_share` is how far `times` may be off; `how` says in words what was measured. The rest is None where it
    couldn't be measured, with the reason in the calibration.
    """

    cpu: str
    n_cpus: int
    times: float
    error_share: float
    how: str
    pinned_bytes_per_s: float | None = None
    pageable_bytes_per_s: float | None = None
    sync_us: float | None = None


@dataclass(frozen=True, slots=True)
class OwnCard:
    """The GPU that was measured, by its driver's name, with the shares of its data sheet's rates that it reached."""

    name: str
    driver: str | None = None
    sustained: Mapping[str, float] = field(default_factory=dict)
    bandwidth_share: float | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured on this machine, when (UTC, ISO 8601), and with what.

    `reasons` says why a figure is missing, by its name. `noted` are figures that the model doesn't take over.
    """

    measured_at: str
    host: OwnHost
    card: OwnCard | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    noted: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def path() -> Path:
    """Where the calibration lies, whether or not there is one."""
    return home() / FILE


def cpu_name() -> str | None:
    """What this machine's processor calls itself, or None where the system doesn't say."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip() or None
    except OSError:
        pass
    return platform.processor() or None


# --- the file -------------------------------------------------------------------------------------------------------


def as_toml(found: Calibration) -> str:
    """The calibration as the text of its file."""
    host, own = found.host, found.card
    tables: dict[str, Mapping[str, object]] = {
        "": {"format": FORMAT, "version": VERSION, "measured_at": found.measured_at, "warnings": list(found.warnings)},
        "versions": found.versions,
        "host": {name: getattr(host, name) for name in host.__slots__},
    }
    if own is not None:
        tables["card"] = {"name": own.name, "driver": own.driver, "bandwidth_share": own.bandwidth_share}
        tables["card.sustained"] = own.sustained
    tables |= {"noted": found.noted, "reasons": found.reasons}
    return "\n".join(_table(name, fields) for name, fields in tables.items())


def _table(name: str, fields: Mapping[str, object]) -> str:
    head = f"[{name}]\n" if name else "# Written by `gpututor calibrate`, which also takes it away (--reset).\n"
    lines = (f"{json.dumps(key)} = {_value(value)}\n" for key, value in fields.items() if value is not None)
    return head + "".join(lines)


def _value(value: object) -> str:
    """A text, number or list of texts in TOML; JSON writes these alike, but for a letter that TOML forbids."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def load() -> Calibration | None:
    """The calibration of this machine; None where there is none, or where it is that of another processor.

    Raises:
        CalibrationDamaged: the file is there and can't be read.
    """
    try:
        text = path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationDamaged(_damaged(str(error))) from None
    try:
        found = _read(Entry(FILE, tomllib.loads(text)))
    except (tomllib.TOMLDecodeError, DataFileError) as error:
        raise CalibrationDamaged(_damaged(str(error).removesuffix("; correct the table"))) from None
    return found if found.host.cpu == (cpu_name() or "") else None


def _damaged(what: str) -> str:
    return f"your calibration {path()} can't be read ({what}); measure again with `gpututor calibrate`"


def _read(table: Entry) -> Calibration:
    if table.text("format") != FORMAT or table.count("version") != VERSION:
        raise table.refuse("version", f"is not {VERSION} of {FORMAT}, which this gpututor reads")
    host = table.inner("host")
    own = table.inner("card") if "card" in table.fields else None
    noted = table.inner("noted")
    return Calibration(
        measured_at=table.text("measured_at"),
        host=OwnHost(
            cpu=host.text("cpu"),
            n_cpus=host.count("n_cpus"),
            times=host.number("times"),
            error_share=host.number("error_share", zero=True),
            how=host.text("how"),
            pinned_bytes_per_s=host.maybe_number("pinned_bytes_per_s"),
            pageable_bytes_per_s=host.maybe_number("pageable_bytes_per_s"),
            sync_us=host.number("sync_us", zero=True) if "sync_us" in host.fields else None,
        ),
        card=None if own is None else _read_card(own),
        versions=table.words("versions"),
        noted=MappingProxyType({name: noted.number(name, zero=True) for name in noted.fields}),
        reasons=table.words("reasons"),
        warnings=table.texts("warnings"),
    )


def _read_card(own: Entry) -> OwnCard:
    sustained = own.inner("sustained")
    return OwnCard(
        own.text("name"),
        own.text("driver", "") or None,
        MappingProxyType({name: sustained.share(name) for name in sustained.fields}),
        own.share("bandwidth_share") if "bandwidth_share" in own.fields else None,
    )


# --- machines from it -----------------------------------------------------------------------------------------------


def base_costs() -> Mapping[str, float]:
    """The amounts of data/hosts.toml that a host's `times` multiplies, in microseconds."""
    return read_table(data_dir() / "hosts.toml").numbers("costs", zero=True)


def own_host(found: Calibration, usual: Host) -> Host:
    """This computer as a host; what couldn't be measured is `usual`'s."""
    own = found.host
    named = {"times": f"measured here on {found.measured_at[:10]}: {own.how}"}
    figures = {name: getattr(own, name) for name in ("pinned_bytes_per_s", "pageable_bytes_per_s", "sync_us")}
    named |= {name: "measured here" if value is not None else f"as {usual.name}" for name, value in figures.items()}
    return replace(
        usual,
        name=HERE,
        cpu=own.cpu or "this computer",
        n_cpus=own.n_cpus,
        costs=scaled(base_costs(), own.times),
        sources=MappingProxyType(named),
        note="",
        costs_error_share=own.error_share,
        **{name: value for name, value in figures.items() if value is not None},
    )


def own_card(found: Calibration) -> Card | None:
    """The measured card with its own shares; None where there is none, or where our table lacks it."""
    listed = find_card(found.card.name) if found.card else None
    if found.card is None or listed is None:
        return None
    sustained = {name: share for name, share in found.card.sustained.items() if name in listed.peak_flop_per_s}
    sources = {f"sustained.{name}": f"measured here on {found.measured_at[:10]}" for name in sustained}
    changed = replace(listed, sustained=MappingProxyType({**listed.sustained, **sustained}))
    if found.card.bandwidth_share is not None:
        changed = replace(changed, bandwidth_share=found.card.bandwidth_share)
        sources["bandwidth_share"] = f"measured here on {found.measured_at[:10]}"
    return replace(changed, sources=MappingProxyType({**listed.sources, **sources}))


def machine_here(card_name: str | None = None) -> Machine:
    """This computer with the card that was measured in it, or with the one of this name put into it.

    Raises:
        NotCalibrated: nothing was measured here, or no card was and none is named.
        CardNotKnown: no card has this name, or our table lacks the one in this machine.
        CalibrationDamaged: the file can't be read.
    """
    found = load()
    if found is None:
        raise NotCalibrated(
            "this machine has not been calibrated, so nobody knows its host; run `gpututor calibrate` first"
        )
    if card_name is None and found.card is None:
        raise NotCalibrated('no GPU was found when this machine was calibrated; name one to put in: "T4 here"')
    if card_name is None:
        chosen = own_card(found)
        if chosen is None:
            assert found.card is not None
            raise CardNotKnown("card", found.card.name, cards())
    else:
        chosen = card(card_name)
        measured = own_card(found)
        if measured is not None and measured.name == chosen.name:
            chosen = measured
    usual = machine_for(chosen.name).host
    name = HERE if card_name is None else f"{chosen.name} {HERE}"
    return Machine(name, "own", chosen, 1, own_host(found, usual), None, "no price", MappingProxyType({}))


def asked_for(name: str) -> tuple[bool, str | None]:
    """Whether a machine's name means this computer, and the card that is to be put into it.

    >>> asked_for("here"), asked_for("T4 here"), asked_for("p3.2xlarge")
    ((True, None), (True, 'T4'), (False, None))
    """
    card_name, _, last = name.strip().rpartition(" ")
    if last.casefold() != HERE:
        return False, None
    return True, card_name.strip() or None
