"""What a watch's readings of power add up to: energy, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpututor.watch.source import Reading

J_A_KWH = 3.6e6
FEWEST = 2  # a stretch of time lies between two readings


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one GPU drew: joules over `known_s` of the `watched_s` seconds; None, and why, where power wasn't read."""

    energy_j: float | None
    known_s: float
    watched_s: float
    reason: str = ""

    @property
    def kwh(self) -> float | None:
        """The same in kilowatt-hours."""
        return None if self.energy_j is None else self.energy_j / J_A_KWH

    def usd(self, usd_a_kwh: float) -> float | None:
        """What it costs at this price.

        >>> Drawn(3.6e6, 60.0, 60.0).usd(0.2), Drawn(None, 0.0, 60.0, "no reading").usd(0.2)
        (0.2, None)
        """
        return None if self.kwh is None else self.kwh * usd_a_kwh


def energy_of(readings: Sequence[Reading], key: str) -> Drawn:
    """The energy of the GPU with this key: power between two readings is taken as the mean of both.

    A stretch with a reading missing at either end counts as time that was watched, and not as known.
    """
    powers = [(r.time_s, next((d.power_w for d in r.devices if d.key == key), None)) for r in readings]
    watched_s = powers[-1][0] - powers[0][0] if powers else 0.0
    energy_j = known_s = 0.0
    for (begin_s, before_w), (end_s, after_w) in pairwise(powers):
        if before_w is not None and after_w is not None:
            known_s += end_s - begin_s
            energy_j += (end_s - begin_s) * (before_w + after_w) / 2
    if known_s:
        return Drawn(energy_j, known_s, watched_s)
    return Drawn(None, 0.0, watched_s, _why(readings, key))


def _why(readings: Sequence[Reading], key: str) -> str:
    """Why no power is known."""
    seen = [device for reading in readings for device in reading.devices if device.key == key]
    if not seen:
        return f"no GPU was read as {key}"
    told = [device.reasons["power_w"] for device in seen if "power_w" in device.reasons]
    return told[-1] if told else f"power was read fewer than {FEWEST} times in a row"
