"""The cost model's own constants, frozen in data/model.toml with the source of each.

A group is one ground of the model (`[tiles]`, `[conv]`, …). Cards and hosts have tables of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from gpututor.errors import DataFileError
from gpututor.paths import data_dir
from gpututor.tables import Entry, read_table

ON_CHANGE: list[Callable[[], None]] = []
"""Called after a constant was set otherwise: whoever remembers what follows from constants forgets it."""


class Group:
    """The constants of one ground, as attributes; `sources` says where each comes from."""

    __slots__ = ("name", "sources", "values")

    def __init__(self, name: str, values: dict[str, float], sources: Mapping[str, str]) -> None:
        self.name, self.values, self.sources = name, values, sources

    def __getattr__(self, constant: str) -> float:
        try:
            return self.values[constant]
        except KeyError:
            raise DataFileError(
                f"data/model.toml, {self.name}: there is no {constant}, which the cost model needs; restore the table"
            ) from None


@cache
def group(name: str) -> Group:
    """The group of this name, the same object for everyone.

    Raises:
        DataFileError: the table is damaged, lacks the group, or gives a constant without a source.
    """
    table = read_table(data_dir() / "model.toml")
    if name not in table.fields:
        raise table.refuse(name, "missing, and the cost model needs this group of constants")
    entry = table.inner(name)
    sources = entry.words("sources")
    values = {key: entry.number(key, zero=True) for key in entry.fields if key != "sources"}
    _check_sources(entry, values, sources)
    return Group(name, values, sources)


def _check_sources(entry: Entry, values: Mapping[str, float], sources: Mapping[str, str]) -> None:
    for key in values:
        if key not in sources:
            raise entry.refuse(key, "has no source; add one under sources")
    for key in sources:
        if key not in values:
            raise entry.refuse(f"sources.{key}", "is the source of nothing; take it out")


@contextmanager
def other(changes: Mapping[str, float]) -> Iterator[None]:
    """A `with` block in which some constants are others: {"conv.layout_share": 0.7}. For fits and what-ifs.

    Raises:
        DataFileError: there is no such constant.
    """
    before: list[tuple[Group, str, float]] = []
    for path, value in changes.items():
        name, _, constant = path.partition(".")
        one = group(name)
        before.append((one, constant, getattr(one, constant)))
        one.values[constant] = value
    _tell()
    try:
        yield
    finally:
        for one, constant, value in reversed(before):
            one.values[constant] = value
        _tell()


def _tell() -> None:
    for forget in ON_CHANGE:
        forget()
