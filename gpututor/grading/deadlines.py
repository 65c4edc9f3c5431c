"""Deadlines: a local time as people write it -> UTC, and what coming late costs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from gpututor.errors import DeadlineUnclear

DAY_S = 86_400


def zone(name: str) -> ZoneInfo:
    """The time zone of this name, such as Europe/Berlin.

    Raises:
        DeadlineUnclear: there is none.
    """
    try:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_+\-]*(/[A-Za-z0-9_+\-]+)*", name):
            raise ValueError(name)
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise DeadlineUnclear(
            f'no time zone is called "{name[:40]}"; write one of the IANA names, such as Europe/Berlin or UTC'
        ) from error


def to_utc(text: str, where: ZoneInfo) -> datetime:
    """A moment in UTC, from a local time "2026-12-18 23:59" or one with its own offset; without seconds, to their end.

    >>> to_utc("2026-12-18 23:59", ZoneInfo("Europe/Berlin")).isoformat()
    '2026-12-18T22:59:59+00:00'

    Raises:
        DeadlineUnclear: it is no time, or one that the clocks skip or show twice on that day.
    """
    plain = text.strip().replace(" ", "T", 1)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", plain):
        raise DeadlineUnclear(f'"{text}" has no time of day; write it as "{plain} 23:59"')
    try:
        if not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", plain):
            raise ValueError(plain)
        told = datetime.fromisoformat(plain.removesuffix("Z") + ("+00:00" if plain.endswith("Z") else ""))
        if re.fullmatch(r"[^T]+T\d\d:\d\d(Z|[+-]\d\d:\d\d)?", plain):
            told = told.replace(second=59)  # "by 23:59" is over when the clock shows 0:00
        return told.astimezone(timezone.utc) if told.tzinfo else _local(told, where, text)
    except (ValueError, OverflowError) as error:
        if isinstance(error, DeadlineUnclear):
            raise
        raise DeadlineUnclear(f'"{text[:40]}" is no time; write it as "2026-12-18 23:59"') from error


def _local(told: datetime, where: ZoneInfo, text: str) -> datetime:
    """A time without an offset, by the clocks of a place."""
    first, second = (told.replace(tzinfo=where, fold=fold).astimezone(timezone.utc) for fold in (0, 1))
    if first.astimezone(where).replace(tzinfo=None) != told:
        raise DeadlineUnclear(
            f"no clock in {where.key} shows {text.strip()}, because they are put forward then; take an hour later"
        )
    if first != second:
        both = " or ".join(moment.astimezone(where).isoformat(" ", "minutes") for moment in (first, second))
        raise DeadlineUnclear(
            f"clocks in {where.key} show {text.strip()} twice, because they are put back then; say which: {both}"
        )
    return first


def iso(moment: datetime) -> str:
    """A moment as files hold it: UTC, ISO 8601, to the second."""
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Late:
    """What coming late costs: a share of the points for each day begun, and nothing counts after `days`.

    A `per_day_share` of 0 and no limit of days: late work is named and costs nothing.
    """

    per_day_share: float = 0.0
    days: int | None = None

    def kept_share(self, late_days: int) -> float:
        """The share of the points that is left.

        >>> Late(0.1, 3).kept_share(2), Late(0.1, 3).kept_share(4), Late().kept_share(9)
        (0.8, 0.0, 1.0)
        """
        if self.days is not None and late_days > self.days:
            return 0.0
        return max(0.0, round(1.0 - self.per_day_share * late_days, 9))

    def __str__(self) -> str:
        """As it is written in class.toml and on the command line."""
        if self.days == 0:
            return "refuse"
        if not self.per_day_share and self.days is None:
            return "none"
        within = "" if self.days is None else f", {self.days} day{'' if self.days == 1 else 's'}"
        return f"{100 * self.per_day_share:g} % a day{within}"


def late_rule(text: str) -> Late:
    """The rule in words: "10 % a day, 3 days", "10 % a day", "none" or "refuse".

    >>> str(late_rule("10% a day, 3 days"))
    '10 % a day, 3 days'

    Raises:
        DeadlineUnclear: it is none of these.
    """
    plain = " ".join(text.casefold().split())
    if plain in ("", "none"):
        return Late()
    if plain == "refuse":
        return Late(0.0, 0)
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?%? ?(?:a|per|/) ?day(?:[,;]? (?:for |at most )?(\d{1,3}) days?)?", plain)
    if found is None or not 0 <= float(found[1]) <= 100:
        raise DeadlineUnclear(f'"{text[:40]}" is no rule for late work; write "10 % a day, 3 days", "none" or "refuse"')
    return Late(round(float(found[1]) / 100, 9), int(found[2]) if found[2] else None)


def late_days(handed_in: datetime, due: datetime) -> int:
    """How many days after it was due something came, each one begun counted; 0 when in time.

    Days of 24 hours, so a change of the clocks neither gives nor takes any.
    """
    return max(0, math.ceil((handed_in - due) / timedelta(seconds=DAY_S)))
