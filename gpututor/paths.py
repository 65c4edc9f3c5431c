"""Where the lessons and the tables lie, inside an installed package or beside it in a clone; and a reader's folder."""

from __future__ import annotations

import os
from pathlib import Path

from gpututor.errors import DataFileError

_PACKAGE = Path(__file__).resolve().parent


def _folder(inside: str, beside: str, sign: str) -> Path:
    """The first of the two folders that holds `sign`; the wheel's own copy wins."""
    candidates = (_PACKAGE / inside, _PACKAGE.parent / beside)
    for folder in candidates:
        if any(folder.glob(sign)):
            return folder
    looked = " and ".join(str(folder) for folder in candidates)
    raise DataFileError(
        f"found no {sign} in {looked}; the installation is incomplete, so install gpututor again "
        f"or run it from a full clone"
    )


def data_dir() -> Path:
    """The folder of cards.toml, hosts.toml and machines.toml.

    Raises:
        DataFileError: neither the package nor the clone around it holds the tables.
    """
    return _folder("_data", "data", "cards.toml")


def lessons_dir() -> Path:
    """The folder of the course, one notebook a lesson.

    Raises:
        DataFileError: neither the package nor the clone around it holds lessons.
    """
    return _folder("_lessons", "lessons", "[0-9][0-9]_*.py")


def recordings_dirs() -> tuple[Path, ...]:
    """Where a lesson looks for runs recorded on a real GPU: the reader's own copies first, then what ships.

    Raises:
        DataFileError: as `data_dir`.
    """
    return home() / "recordings", data_dir() / "recordings"


def home() -> Path:
    """The folder of everything kept for learners: GPUTUTOR_HOME, else the system's place for a user's data."""
    import platformdirs

    return Path(os.environ.get("GPUTUTOR_HOME") or platformdirs.user_data_path("gpututor", appauthor=False))
