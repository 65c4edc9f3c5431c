"""The versions of torch whose inner names the simulated GPU knows, and the refusal of all others."""

from __future__ import annotations

import re

from gpututor.errors import TorchNotSupported

FIRST, LAST = (2, 10), (2, 14)
"""Every name in `gpututor.simgpu.private` is there in 2.10, 2.11, 2.12, 2.13 and 2.14. The tests run on 2.13."""

KNOWN = f"{FIRST[0]}.{FIRST[1]} to {LAST[0]}.{LAST[1]}"
INSTALL = f'install one of those (pip install "torch>={FIRST[0]}.{FIRST[1]},<{LAST[0]}.{LAST[1] + 1}")'


def check_torch(version: str) -> None:
    """Refuse a torch whose inner names we don't know.

    Raises:
        TorchNotSupported: the version lies outside the known range, or can't be read.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        raise TorchNotSupported(
            f"the installed torch calls itself {version!r}, which is no version, and the simulated GPU needs to know "
            f"that it is one from {KNOWN}; {INSTALL}"
        )
    number = int(found[1]), int(found[2])
    if FIRST <= number <= LAST:
        return
    what = "older" if number < FIRST else "newer"
    raise TorchNotSupported(
        f"torch {version} is installed, which is {what} than the simulated GPU knows: it uses inner names of torch as "
        f"they are in {KNOWN}, and torch may change them with any release; {INSTALL}, or a newer gpututor"
    )
