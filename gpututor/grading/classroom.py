"""A class: its folder with class.toml for people to read and edit, the roster, points given by hand, a secret seed.

Hidden cases and the names of feedback pages are drawn from the seed. It lies in a file of its own, readable by its
owner alone, and is never printed or written anywhere else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from gpututor.errors import ClassDamaged, DeadlineUnclear
from gpututor.exercises.form import Exercise
from gpututor.exercises.registry import EXERCISES
from gpututor.grading import roster
from gpututor.grading.deadlines import Late, iso, late_rule, to_utc, zone
from gpututor.grading.roster import Learner
from gpututor.results import write_at_once

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT, VERSION = "gpututor-class", 1
FILE, ROSTER, SEED, OVERRIDES = "class.toml", "roster.csv", "seed.secret", "overrides.csv"
N_HIDDEN = 3  # hidden cases an exercise, our choice: code that knows the shown case by heart has nothing to gain
MOST_HIDDEN = 20
SEED_BYTES = 32
FIELDS = {"format", "version", "title", "lessons", "deadline", "timezone", "deadline_utc", "late", "hidden_cases"}

TEXT = """\
# A class of gpututor. Edit it as you like, then run `gpututor grade` again: what is judged stays judged.
# Learners and their extensions stand in {roster}, points given by hand in {overrides}.
# {seed} is secret: hidden cases are drawn from it. Keep it, and don't hand it out with this folder.
format = "{format}"
version = {version}

title = {title}
lessons = "{lessons}"          # such as "1-10" or "1-3, 5"
deadline = "{local}"       # by the clocks of the time zone, which must show it once
timezone = "{timezone}"
deadline_utc = "{utc}"   # the same moment; when you change the deadline, take this line out
late = "{late}"                # "10 % a day, 3 days" (days begun; nothing counts after them), "none", or "refuse"
hidden_cases = {n_hidden}                # cases that nobody sees, for each exercise in code that has such
"""


@dataclass(frozen=True, slots=True)
class Classroom:
    """A class as its folder tells it. `deadline` is in UTC; the seed stays out of anything printed."""

    folder: Path
    title: str
    lessons: tuple[int, ...]
    deadline: datetime
    zone: ZoneInfo
    late: Late
    n_hidden: int
    learners: tuple[Learner, ...]
    seed: bytes = field(repr=False)

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """The exercises of its lessons, in the order of the course."""
        return tuple(one for one in EXERCISES if one.lesson in self.lessons)

    @property
    def by_id(self) -> Mapping[str, Learner]:
        """The learners by what the spellings of their ids have in common."""
        return {roster.same(one.id): one for one in self.learners}

    def secret(self, purpose: str) -> str:
        """Hex digits that hang on the seed and the purpose, and tell nothing of the seed."""
        return hmac.new(self.seed, purpose.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def lessons_in(text: str) -> tuple[int, ...]:
    """The lessons in a text such as "1-3, 5"; "all" is every lesson that has exercises.

    >>> lessons_in("1-3, 5"), len(lessons_in("all")) == len({one.lesson for one in EXERCISES})
    ((1, 2, 3, 5), True)

    Raises:
        ClassDamaged: it can't be read, or names a lesson without exercises.
    """
    known = sorted({one.lesson for one in EXERCISES})
    if text.strip().casefold() == "all":
        return tuple(known)
    found: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,2})\s*(?:[-–]\s*(\d{1,2}))?\s*", part)
        if ends is None:
            raise ClassDamaged(f'"{text[:40]}" names no lessons; write "1-10" or "1-3, 5"')
        found |= set(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    if not found or not found <= set(known):
        odd = ", ".join(map(str, sorted(found - set(known)))) or text[:40]
        raise ClassDamaged(f"there are no exercises in lesson {odd}; lessons {known[0]} to {known[-1]} have some")
    return tuple(sorted(found))


def as_text(lessons: tuple[int, ...]) -> str:
    """Lessons as people write them.

    >>> as_text((1, 2, 3, 5))
    '1-3, 5'
    """
    runs: list[list[int]] = []
    for lesson in lessons:
        if runs and lesson == runs[-1][-1] + 1:
            runs[-1].append(lesson)
        else:
            runs.append([lesson])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def new(
    folder: Path,
    roster_file: Path,
    deadline: str,
    timezone: str,
    lessons: str = "all",
    late: str = "",
    title: str = "",
) -> Classroom:
    """Make a class's folder and give the class.

    Raises:
        ClassDamaged: the folder holds something already.
        RosterDamaged, DeadlineUnclear: what was given can't be read.
        OSError: the disk is full, read-only, or not ours.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ClassDamaged(f"{folder} is there already and isn't empty; name a new folder, or edit its {FILE}")
    where, rule, chosen = zone(timezone), late_rule(late), lessons_in(lessons)
    moment = to_utc(deadline, where)
    learners = roster.read(roster_file, moment, where)
    title = " ".join(title.split()) or "How busy is the GPU"
    made = Classroom(folder, title, chosen, moment, where, rule, N_HIDDEN, learners, secrets.token_bytes(SEED_BYTES))
    folder.mkdir(parents=True, exist_ok=True)
    _keep_secret(folder / SEED, made.seed)
    write_at_once(folder / ".gitignore", f"{SEED}\n")
    write_at_once(folder / ROSTER, roster.to_text(learners))
    write_at_once(folder / OVERRIDES, "id,exercise,points,comment,by,at\r\n")
    write_at_once(folder / FILE, _told(made))
    return made


def _told(made: Classroom) -> str:
    local = made.deadline.astimezone(made.zone)
    again = local.replace(fold=1 - local.fold).utcoffset() != local.utcoffset()  # a clock shows it twice
    return TEXT.format(
        roster=ROSTER,
        overrides=OVERRIDES,
        seed=SEED,
        format=FORMAT,
        version=VERSION,
        title=json.dumps(made.title, ensure_ascii=False).replace("\x7f", ""),
        lessons=as_text(made.lessons),
        local=f"{local:%Y-%m-%d %H:%M:%S}" if not again else local.isoformat(" ", "seconds"),
        timezone=made.zone.key,
        utc=iso(made.deadline),
        late=made.late,
        n_hidden=made.n_hidden,
    )


def _keep_secret(path: Path, seed: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(seed.hex() + "\n")


def read(folder: Path) -> Classroom:
    """The class of a folder.

    Raises:
        ClassDamaged: it holds none, or one that can't be read; names the file and the entry.
        RosterDamaged: its roster can't be read.
        DeadlineUnclear: its deadline can't.
    """
    path = folder / FILE
    try:
        told = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ClassDamaged(
            f"{folder} holds no class ({FILE}: {error.strerror}); gpututor class new makes one"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ClassDamaged(f"{path} is no TOML ({error}); correct it") from error
    if told.get("format") != FORMAT or told.get("version") != VERSION:
        raise ClassDamaged(f'{path} is not of format "{FORMAT}", version {VERSION}; use the gpututor that made it')
    if odd := set(told) - FIELDS:
        raise ClassDamaged(f"{path} has an entry {', '.join(sorted(odd))} that means nothing; look at its spelling")
    where = zone(_text(told, "timezone", path))
    deadline = to_utc(_text(told, "deadline", path), where)
    if "deadline_utc" in told and to_utc(_text(told, "deadline_utc", path), where) != deadline:
        raise DeadlineUnclear(f"{path}: deadline and deadline_utc are different moments; take deadline_utc out")
    n_hidden = told.get("hidden_cases", N_HIDDEN)
    if type(n_hidden) is not int or not 0 <= n_hidden <= MOST_HIDDEN:
        raise ClassDamaged(f"{path}: hidden_cases is {n_hidden!r}; it takes a whole number from 0 to {MOST_HIDDEN}")
    return Classroom(
        folder,
        _text(told, "title", path),
        lessons_in(_text(told, "lessons", path)),
        deadline,
        where,
        late_rule(_text(told, "late", path)),
        n_hidden,
        roster.read(folder / ROSTER, deadline, where),
        _seed(folder / SEED),
    )


def _text(told: Mapping[str, Any], name: str, path: Path) -> str:
    if not isinstance(told.get(name), str):
        raise ClassDamaged(f"{path}: {name} is missing or no text; write {name} = “…” with plain quotes")
    return str(told[name])


def _seed(path: Path) -> bytes:
    try:
        seed = bytes.fromhex(path.read_text("ascii").strip())
    except (OSError, ValueError) as error:
        raise ClassDamaged(
            f"{path} can't be read ({type(error).__name__}); hidden cases are drawn from it, so put the file back"
        ) from error
    if len(seed) != SEED_BYTES:
        raise ClassDamaged(f"{path} is damaged: it should hold {2 * SEED_BYTES} hex digits; put the file back")
    return seed
