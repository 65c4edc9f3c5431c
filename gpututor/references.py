"""Numbers that others saw or published, from data/references.toml, to put beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gpututor.errors import NotKnown
from gpututor.paths import data_dir
from gpututor.tables import named, read_table

FIELDS = frozenset({"what", "values", "unit", "source", "note"})


@dataclass(frozen=True, slots=True)
class Reference:
    """One thing that others measured: one value or several, in `unit` ("share" in 0..1, "ns"), and by whom."""

    name: str
    what: str
    values: tuple[float, ...]
    unit: str
    source: str
    note: str

    @property
    def value(self) -> float:
        """The middle one of the values."""
        return sorted(self.values)[len(self.values) // 2]


@cache
def references() -> dict[str, Reference]:
    """Every reference by name.

    Raises:
        DataFileError: the table is damaged.
    """
    found = {}
    for name, entry in named(read_table(data_dir() / "references.toml"), "reference"):
        entry.only(FIELDS)
        values = entry.fields.get("values")
        if not isinstance(values, list) or not values or not all(isinstance(v, int | float) and v > 0 for v in values):
            raise entry.refuse("values", f"holds {values!r}, where a list of positive numbers is needed")
        found[name] = Reference(
            name,
            entry.text("what"),
            tuple(float(v) for v in values),
            entry.text("unit"),
            entry.text("source"),
            entry.text("note", ""),
        )
    return found


def reference(name: str) -> Reference:
    """The reference of this name.

    Raises:
        NotKnown: there is none; the message lists near matches.
    """
    known = references()
    if name not in known:
        raise NotKnown("reference", name, known)
    return known[name]
