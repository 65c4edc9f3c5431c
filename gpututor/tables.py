"""Typed reading of our own TOML tables: each refusal names the file, the entry and the field."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from gpututor.errors import DataFileError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Entry:
    """One table of a file, read field by field; `where` is the file and entry as a reader looks them up."""

    where: str
    fields: Mapping[str, object]

    def refuse(self, field: str, problem: str) -> DataFileError:
        """The error to raise about one field: where it stands, what is wrong, what to do."""
        return DataFileError(f"{self.where}, {field}: {problem}; correct the table")

    def _get(self, field: str, kind: type | tuple[type, ...], wanted: str) -> object:
        if field not in self.fields:
            raise self.refuse(field, f"missing, and {wanted} is needed")
        value = self.fields[field]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.refuse(field, f"holds {value!r}, where {wanted} is needed")
        return value

    def text(self, field: str, default: str | None = None) -> str:
        """A string; `default` where the field is absent and a default is given."""
        if default is not None and field not in self.fields:
            return default
        return str(self._get(field, str, "a text"))

    def texts(self, field: str) -> tuple[str, ...]:
        """A list of strings; empty where the field is absent."""
        if field not in self.fields:
            return ()
        values = self._get(field, list, "a list of texts")
        assert isinstance(values, list)
        for value in values:
            if not isinstance(value, str):
                raise self.refuse(field, f"holds {value!r}, where a text is needed")
        return tuple(values)

    def count(self, field: str) -> int:
        """A whole number, 1 or more."""
        value = self._get(field, int, "a whole number")
        assert isinstance(value, int)
        if value < 1:
            raise self.refuse(field, f"is {value}, and a count is at least 1")
        return value

    def maybe_count(self, field: str) -> int | None:
        """A whole number, or None where the table leaves it out."""
        return self.count(field) if field in self.fields else None

    def number(self, field: str, *, zero: bool = False) -> float:
        """A positive finite number (zero too, where `zero` allows it)."""
        value = self._get(field, (int, float), "a number")
        assert isinstance(value, (int, float))
        if not (0 < value < float("inf") or (zero and value == 0)):
            raise self.refuse(field, f"is {value}, and it has to be {'zero or more' if zero else 'more than zero'}")
        return float(value)

    def maybe_number(self, field: str) -> float | None:
        """A positive number, or None where the table leaves it out."""
        return self.number(field) if field in self.fields else None

    def share(self, field: str) -> float:
        """A number above 0 and at most 1."""
        value = self.number(field)
        if value > 1:
            raise self.refuse(field, f"is {value:g}, and a share is at most 1")
        return value

    def inner(self, field: str) -> Entry:
        """A table inside this one; an empty one where it is absent."""
        value = self.fields.get(field, {})
        if not isinstance(value, Mapping):
            raise self.refuse(field, f"holds {value!r}, where a table is needed")
        return Entry(f"{self.where}.{field}", value)

    def numbers(self, field: str, *, zero: bool = False) -> Mapping[str, float]:
        """An inner table of numbers, in the order of the file."""
        inner = self.inner(field)
        return MappingProxyType({key: inner.number(key, zero=zero) for key in inner.fields})

    def words(self, field: str) -> Mapping[str, str]:
        """An inner table of texts."""
        inner = self.inner(field)
        return MappingProxyType({key: inner.text(key) for key in inner.fields})

    def only(self, allowed: frozenset[str]) -> None:
        """Refuse a field that nobody reads, so that a misspelt one can't go unnoticed."""
        for field in self.fields:
            if field not in allowed:
                raise self.refuse(field, f"is not a field we know (known: {', '.join(sorted(allowed))})")


def read_table(path: Path) -> Entry:
    """A whole TOML file as one entry.

    Raises:
        DataFileError: the file is missing, unreadable or not TOML.
    """
    try:
        return Entry(f"data/{path.name}", tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise DataFileError(f"can't read {path}: {error.strerror}; install gpututor again") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataFileError(f"{path} is not a TOML file ({error}); correct the table") from error


def named(table: Entry, kind: str) -> Iterator[tuple[str, Entry]]:
    """The entries of one kind, as ``[kind."NAME"]`` tables or as a ``[[kind]]`` list with a name in each.

    Raises:
        DataFileError: there is no entry of this kind, or two have the same name.
    """
    found = table.fields.get(kind)
    if isinstance(found, Mapping):
        pairs = list(found.items())
    elif isinstance(found, list):
        pairs = [(Entry(f"{table.where}, {kind} {i + 1}", e).text("name"), e) for i, e in enumerate(found)]
    else:
        raise table.refuse(kind, "has no entry, and at least one is needed")
    seen: set[str] = set()
    for name, entry in pairs:
        if not isinstance(entry, Mapping):
            raise table.refuse(f"{kind}.{name}", f"holds {entry!r}, where a table is needed")
        if name.casefold() in seen:
            raise table.refuse(f"{kind}.{name}", "stands there twice")
        seen.add(name.casefold())
        yield name, Entry(f"{table.where}, {kind} {name!r}", entry)
