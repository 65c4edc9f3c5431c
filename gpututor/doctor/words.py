"""Sizes and lists as the doctor writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gpututor.text import NBSP


def binary(n_bytes: float | None) -> str:
    """Bytes in units of 1024, as `docker run --shm-size` and `free` count them.

    >>> binary(64 * 2**20), binary(23.5 * 2**30), binary(512), binary(None)
    ('64\\xa0MiB', '23.5\\xa0GiB', '512\\xa0B', 'not known')
    """
    if n_bytes is None:
        return "not known"
    for size, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if n_bytes >= size:
            return (
                f"{n_bytes / size:.3g}{NBSP}{unit}" if n_bytes < 1000 * size else f"{n_bytes / size:,.0f}{NBSP}{unit}"
            )
    return f"{n_bytes:.0f}{NBSP}B"


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "CPU"), counted(8, "CPU"), counted(2, "process", "processes")
    ('1 CPU', '8 CPUs', '2 processes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(names: Iterable[str]) -> str:
    """Names in a row.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *most, last = list(names)
    return f"{', '.join(most)} and {last}" if most else last


def several(names: Iterable[str]) -> str:
    """Names in a row, equal ones once with their number.

    >>> several(["Tesla T4", "Tesla T4", "Tesla V100"])
    '2 × Tesla T4 and Tesla V100'
    """
    n_by_name = Counter(names)
    return listed(f"{n} × {name}" if n > 1 else name for name, n in n_by_name.items())


def version_of(text: str | None) -> tuple[int, int] | None:
    """Major and minor number of a version; None where there are none.

    >>> version_of("12.6"), version_of("580.65.06"), version_of(None)
    ((12, 6), (580, 65), None)
    """
    major, _, rest = (text or "").partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
