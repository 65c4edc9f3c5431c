"""Lesson 18's watched run: what `gpututor watch` kept of it, as curves and in the words of its one rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpututor.page.figures import TAG
from gpututor.page.kept import Kept
from gpututor.page.line_figure import line_figure
from gpututor.page.parts import escape
from gpututor.page.run import ghost
from gpututor.text import percent
from gpututor.timeline import Origin
from gpututor.watch.energy import Drawn, energy_of
from gpututor.watch.files import readings_in
from gpututor.watch.meaning import Verdict, verdict
from gpututor.watch.source import Device, Reading

CARD, PROCESSOR = "card: a kernel runs", "processor: busy"


@dataclass(frozen=True, slots=True)
class Watched:
    """The readings of one run, and the card in them that was its own; `trouble` says why there are none."""

    readings: tuple[Reading, ...] = ()
    pid: int = 0
    turned_s: float | None = None
    trouble: str = ""

    def device(self, reading: Reading) -> Device | None:
        """The run's card in a reading."""
        mine = (d for d in reading.devices if any(p.pid == self.pid for p in d.processes or ()))
        return next(mine, None)

    @property
    def card(self) -> Device | None:
        """The run's card as it was read last."""
        return next(filter(None, map(self.device, reversed(self.readings))), None)

    def lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Seconds since the first reading, and how busy card and processor were."""
        began_s = self.readings[0].time_s
        shares: dict[str, list[tuple[float, float | None]]] = {CARD: [], PROCESSOR: []}
        for reading in self.readings:
            device = self.device(reading)
            shares[CARD].append((reading.time_s - began_s, device.kernel_time_share if device else None))
            shares[PROCESSOR].append((reading.time_s - began_s, reading.cpu.busy_share))
        return shares

    def verdicts(self, *, late: bool) -> Counter[Verdict]:
        """How often each verdict came before the loader began to work, or after it; those that can't tell left out."""
        found: Counter[Verdict] = Counter()
        for reading in self.readings:
            device, is_late = self.device(reading), self.turned_s is not None and reading.time_s >= self.turned_s
            if device is not None and is_late == late:
                found[verdict(device, reading.cpu)] += 1
        found.pop(Verdict.UNKNOWN, None)
        return found

    def said(self, *, late: bool) -> str:
        """The verdict that came most often in a half, in its own words."""
        found = self.verdicts(late=late)
        return found.most_common(1)[0][0].value if found else Verdict.UNKNOWN.value

    def busy_share(self, *, late: bool) -> float | None:
        """The mean share of the time with a kernel running in a half; None where it wasn't read."""
        halves = [r for r in self.readings if (self.turned_s is not None and r.time_s >= self.turned_s) == late]
        devices = [device for device in map(self.device, halves) if device is not None]
        shares = [d.kernel_time_share for d in devices if d.kernel_time_share is not None]
        return sum(shares) / len(shares) if shares else None

    @property
    def drawn(self) -> Drawn:
        """The energy that the card drew; for a simulated one the reason why nobody knows."""
        card = self.card
        return energy_of(self.readings, card.key if card is not None else "a card of this run")

    @property
    def energy_said(self) -> str:
        """The same in a sentence."""
        drawn = self.drawn
        if drawn.kwh is None:
            return f"Its energy is not known: {drawn.reason}."
        return f"It drew {drawn.kwh:.4f} kWh in the {drawn.known_s:.0f} s in which its power was read."

    @property
    def halves_said(self) -> str:
        """What the card did in both halves, and what the watch said of it."""
        first, second = self.busy_share(late=False), self.busy_share(late=True)
        then = "" if second is None else f" Then a loader had to draw each picture: {percent(second)}."
        return (
            f"At first its batches lay ready, and a kernel ran {percent(first)} of the time.{then} The watch said "
            f"first: “{self.said(late=False)}” And then: “{self.said(late=True)}”"
        )


def watched_in(kept: Kept) -> Watched:
    """What a run's watch kept; none, and a sentence, where it couldn't or the run was stopped before it."""
    told: Mapping[str, object] = kept.data.get("watched") or {}
    folder = kept.result.folder if kept.result is not None else None
    if not told or folder is None:
        return Watched(trouble="The run ended before anything was watched; run it again.")
    if told.get("trouble"):
        return Watched(trouble=str(told["trouble"]))
    try:
        readings = readings_in(folder / str(told["readings"]))
    except OSError as error:
        return Watched(trouble=f"What the watch kept is gone ({error.strerror}); run it again.")
    turned = told.get("turned_s")
    turned_s = float(turned) if isinstance(turned, int | float) else None
    found = Watched(readings, int(str(told["pid"])), turned_s)
    return found if found.card is not None else Watched(trouble="The watch never saw the run's card; run it again.")


def watch_figure(watched: Watched) -> object:
    """How busy card and processor were, reading by reading."""
    card = watched.card
    if card is None:
        return ghost(watched.trouble)
    tag = TAG[Origin.SIMULATED]
    source = f'<span class="gt-tag gt-simulated">{tag}</span> {escape(card.name)} · this computer in real time (paced)'
    note = f"{len(watched.readings)} readings. Halfway the loader began to draw. {watched.energy_said}"
    return line_figure(
        "The same run, watched",
        source,
        watched.lines(),
        x_title="seconds watched",
        y_title="busy",
        kind="share",
        note=note,
    )


def events_folder(kept: Kept) -> Path | None:
    """The folder for TensorBoard that the run left; None without one."""
    folder = kept.result.folder if kept.result is not None else None
    events = kept.data.get("events")
    return None if folder is None or not events else folder / str(events)
