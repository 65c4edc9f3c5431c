"""What code in a sandbox can see, as arguments for bubblewrap: a list of what is shown; everything else is not there.

Judges, grades, lessons, tests, home folders and submissions are not hidden one by one. They are never put in.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpututor.lab.processes import PACKAGE_ROOT
from gpututor.paths import data_dir

MIB = 2**20
TMP_BYTES = 256 * MIB  # both together: files, and what a loader's workers share
FOLDER = "/tmp/learner"  # noqa: S108 - inside the sandbox, whose /tmp is its own
SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib")
LINKED = ("/lib", "/lib32", "/lib64")  # links into /usr on most systems, folders on older ones
FILES = ("/etc/ld.so.cache",)

SHOWN = (
    "__init__.py",
    "errors.py",
    "text.py",
    "progress.py",
    "marking.py",
    "timeline.py",
    "timeline_file.py",
    "paths.py",
    "tables.py",
    "hardware.py",
    "live.py",
    "cards.py",
    "links.py",
    "own_machine.py",
    "lookup.py",
    "model",
    "recording.py",
    "simgpu",
    "compiling.py",
    "jobs",
    "lab",
    "exercises/__init__.py",
    "exercises/on_card",
)
"""The parts of this package that a harness needs. Judges and what they expect lie elsewhere, and stay outside."""


@dataclass(frozen=True, slots=True)
class Way:
    """How to make a sandbox: with this bubblewrap, and whether root's code goes on as a user that nobody else is.

    Without `drops_user` the code keeps its user's number in a user namespace of its own. Root's own number is exempt
    from the limit on processes, which is why root had better drop it.
    """

    program: str
    drops_user: bool = False


def arguments(way: Way) -> list[str]:
    """bubblewrap's arguments, up to the command."""
    return [
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if way.drops_user else ("--unshare-user", "--disable-userns")),
        *("--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"),
        *(("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") if way.drops_user else ()),
        *_environment(),
        *("--proc", "/proc", "--dev", "/dev", *_tmpfs("/dev/shm"), "--remount-ro", "/dev", *_tmpfs("/tmp")),  # noqa: S108
        *(part for source in _shown() for part in source),
        *("--chdir", "/", "--remount-ro", "/"),
    ]


def import_from() -> list[str]:
    """Folders that the sandbox's interpreter must look in besides its own: this package's, and any of odd places."""
    return [str(PACKAGE_ROOT), *_odd_places()]


def stranger() -> int:
    """A user's number that no system gives out: above those of containers, below 2^31."""
    return 1_900_000_000 + secrets.randbelow(200_000_000)


def _environment() -> Iterator[str]:
    yield "--clearenv"
    settings = {
        "PATH": "/usr/bin:/bin",
        "HOME": FOLDER,
        "TMPDIR": FOLDER,
        "USER": "learner",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",  # the same order in sets on every machine
        "PYTHONSAFEPATH": "1",
        "PYTHONNOUSERSITE": "1",
    }
    # Some processors need an older kernel of OpenBLAS: that is the machine's business, not the learner's.
    settings |= {name: os.environ[name] for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ}
    for name, value in settings.items():
        yield from ("--setenv", name, value)


def _tmpfs(place: str) -> tuple[str, ...]:
    return "--perms", "1777", "--size", str(TMP_BYTES // 2), "--tmpfs", place


def _shown() -> Iterator[tuple[str, ...]]:
    """Binds and links, in the order in which they must be made: a bind may lie inside an earlier one."""
    for place in LINKED:
        if Path(place).is_symlink():
            yield "--symlink", os.readlink(place), place  # noqa: PTH115 - the text of the link, whatever it is
        elif Path(place).is_dir():
            yield "--ro-bind", place, place
    places = dict.fromkeys((*SYSTEM, *FILES, *_interpreter(), *_odd_places()))
    yield from _folders_to([*places, sys.executable, str(PACKAGE_ROOT / "gpututor")])
    yield from (("--ro-bind-try", place, place) for place in places)
    if (program := Path(sys.executable)).is_symlink():
        yield "--symlink", str(program.resolve()), str(program)
    yield from _package()


def _folders_to(places: list[str]) -> Iterator[tuple[str, ...]]:
    """The folders on the way to them, which bubblewrap by itself makes for their owner's eyes only."""
    on_the_way = {str(parent) for place in places for parent in Path(place).parents}
    yield from (("--perms", "0755", "--dir", folder) for folder in sorted(on_the_way - {"/", "/tmp"}))  # noqa: S108


def _interpreter() -> Iterator[str]:
    for prefix in dict.fromkeys((sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix)):
        yield from (f"{prefix}/{part}" for part in ("lib", "lib64", "pyvenv.cfg"))
    yield str(Path(sys.executable).resolve())


def _odd_places() -> list[str]:
    """Folders of packages that this interpreter uses outside of its own, such as a user's."""
    inside = (*SYSTEM, *(f"{prefix}/lib" for prefix in (sys.prefix, sys.base_prefix)))
    packages = (path for path in sys.path if Path(path).name in ("site-packages", "dist-packages"))
    return [path for path in packages if not path.startswith(tuple(f"{place}/" for place in inside))]


def _package() -> Iterator[tuple[str, ...]]:
    """This package's shown parts, in an empty folder that covers the whole package where it lies in a shown place."""
    package = PACKAGE_ROOT / "gpututor"
    shown = [*(str(package / part) for part in SHOWN), *map(str, sorted(data_dir().glob("*.toml")))]
    yield "--tmpfs", str(package)
    yield from _folders_to(shown)
    yield from (("--ro-bind-try", place, place) for place in shown)
    yield "--remount-ro", str(package)
