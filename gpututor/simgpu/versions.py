"""The versions of torch whose inner seams the simulated GPU knows."""

from __future__ import annotations

import re

from gpututor.errors import TorchNotSupported

FIRST, LAST = (2, 10), (2, 14)
"""Every inner name used is there from 2.10 to 2.14; the tests run on 2.13."""


def check_torch(version: str) -> None:
    """Refuse a torch whose seams we don't know.

    Raises:
        TorchNotSupported: the version lies outside the known range, or can't be read.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or not FIRST <= (int(found[1]), int(found[2])) <= LAST:
        known = f"{FIRST[0]}.{FIRST[1]} to {LAST[0]}.{LAST[1]}"
        raise TorchNotSupported(
            f"torch {version} is installed, and the simulated GPU reaches into torch's inner parts as they are in "
            f"{known}; install one of those, or a newer gpututor"
        )
