"""Who may come in: a secret key for each learner and one for the instructor, in one file that only its owner reads."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from gpututor.errors import GpututorError
from gpututor.readers import Reader
from gpututor.results import write_at_once
from gpututor.workshop.roster import INSTRUCTOR, Learner

FILE = "keys.json"
FORMAT, VERSION = "gpututor-workshop-keys", 1
KEY_BYTES = 18  # 144 bits: nobody guesses one, and it needs no padding in base64


class KeysRefused(GpututorError, ValueError):
    """The file of keys can't be read, or others may read it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody with a key."""

    id: str
    name: str
    key: str

    def __repr__(self) -> str:
        """Without the key, which has no place in a log."""
        return f"Holder({self.id!r}, {self.name!r})"


@dataclass(frozen=True, slots=True)
class Keys:
    """Everybody who may come in; the instructor is not among the learners."""

    learners: tuple[Holder, ...]
    instructor: Holder

    def who(self, key: str) -> Reader | None:
        """Whom a key belongs to; takes as long whoever it is."""
        told, found = key.encode("utf-8", "surrogatepass"), None
        for holder in self:
            if hmac.compare_digest(holder.key.encode("ascii"), told):
                found = holder
        return None if found is None else Reader(found.id, teaches=found is self.instructor)

    def __iter__(self) -> Iterator[Holder]:
        """The instructor first, then the learners."""
        return iter((self.instructor, *self.learners))


def issue(roster: Iterable[Learner], state: Path, *, anew: str | None = None) -> Keys:
    """Keys for everybody on the roster, kept in the folder `state`.

    Who has one keeps it, but for the id `anew`; who is no longer on the roster loses it.

    Raises:
        KeysRefused: the file that is there can't be read, or nobody has the id `anew`.
        OSError: the folder can't be written.
    """
    make_private(state)
    known = {holder.id: holder.key for holder in read(state)} if (state / FILE).exists() else {}
    wanted = [Learner(INSTRUCTOR, "Instructor"), *roster]
    if anew is not None and known.pop(anew, None) is None:
        raise KeysRefused(f'nobody here has the id "{anew}", so there is no key to replace; look at the roster')
    first, *rest = (Holder(one.id, one.name, known.get(one.id) or secrets.token_urlsafe(KEY_BYTES)) for one in wanted)
    told = {"format": FORMAT, "version": VERSION}
    people = [{"id": one.id, "name": one.name, "key": one.key} for one in (first, *rest)]
    write_at_once(state / FILE, json.dumps(told | {"holders": people}, indent=1) + "\n")
    return Keys(tuple(rest), first)


def make_private(state: Path) -> None:
    """Make the folder, and close it to everybody but its owner.

    Raises:
        OSError: it can't be made or isn't ours.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.chmod(0o700)


def read(state: Path) -> Keys:
    """The keys in a folder.

    Raises:
        KeysRefused: there are none, they can't be read, or others than their owner may read them.
    """
    path = state / FILE
    try:
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise KeysRefused(f"others on this machine may read {path}, which holds the keys; chmod 600 it")
        told = json.loads(path.read_text("utf-8"))
        if (told["format"], told["version"]) != (FORMAT, VERSION):
            raise KeysRefused(f"{path} is no file of keys of this version; name another folder with --state")
        first, *rest = (_holder(each) for each in told["holders"])
    except FileNotFoundError as error:
        raise KeysRefused(f"{state} holds no keys yet; name the class with --roster") from error
    except OSError as error:
        raise KeysRefused(f"{path} can't be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, KeysRefused):
            raise
        raise KeysRefused(f"{path} is damaged; take it away and everybody gets a new key") from error
    return Keys(tuple(rest), first)


def _holder(told: Any) -> Holder:
    if not all(isinstance(told[name], str) for name in ("id", "name", "key")) or not told["key"].isascii():
        raise ValueError
    if len(told["key"]) < KEY_BYTES:
        raise ValueError
    return Holder(told["id"], told["name"], told["key"])


def address(base: str, holder: Holder, **more: str) -> str:
    """Somebody's own address, which lets them in.

    >>> address("http://10.0.0.5:2718/", Holder("ann", "Ann", "k3y"), file="01_the_gauge.py")
    'http://10.0.0.5:2718/?file=01_the_gauge.py&key=k3y'
    """
    return f"{base.rstrip('/')}/?{urlencode(more | {'key': holder.key})}"


class Watched:
    """The keys of a folder, read anew when the file has changed, so that who comes late needs no restart."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp: tuple[int, int] | None = None
        self._keys = read(state)

    def now(self) -> Keys:
        """The keys as they stand; those of before while the file can't be read."""
        try:
            found = (self._state / FILE).stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp != self._stamp:
                self._keys, self._stamp = read(self._state), stamp
        except (OSError, KeysRefused):
            return self._keys
        return self._keys
