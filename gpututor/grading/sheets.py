"""Tables as spreadsheets save them: read whatever the dialect, and written so that no cell is a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpututor.errors import RosterDamaged

MAX_BYTES = 16 * 2**20  # our choice: a class of ten thousand has some 1 MB
MAX_CELL = 2_000  # characters, our choice: longer than any name or comment in a table
SEPARATORS = ",;\t"
FORMULA = "=+-@\t\r"
"""A cell that begins so is a formula to spreadsheets. Source: OWASP, "CSV Injection"."""

_MARKED = re.compile(r"(^|[,;|\"'\t\r\n]\s*)'([=+\-@])")
_INSIDE = re.compile(r"([,;|\"'\t\r\n]\s*)([=+\-@])")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: the cells by their column's name, and where it stands."""

    file: str
    line: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        """The cell, without blanks around it; empty where there is no such column."""
        return self.cells.get(column, "")

    def refuse(self, why: str) -> RosterDamaged:
        """The error to raise about this line."""
        return RosterDamaged(f"{self.file}, line {self.line}: {why}")


def read(path: Path, known: Mapping[str, Sequence[str]], needed: Sequence[str]) -> list[Row]:
    """The lines of a table that aren't empty. `known` names each column with the other headings that mean it.

    Separated by comma, semicolon or tab, in UTF-8 with or without a mark in front, or in UTF-16 with one.

    Raises:
        RosterDamaged: it can't be read as a table with the columns `needed`; names the line.
    """
    lines = _lines(_text(path), path.name)
    header_line, header = next(lines, (1, []))
    columns = _columns(header, known, f"{path.name}, line {header_line}", needed)
    rows = []
    for number, cells in lines:
        if len(cells) > len(columns) and any(cells[len(columns) :]):
            raise RosterDamaged(
                f"{path.name}, line {number}: {len(cells)} cells under {len(columns)} headings; put a cell that holds "
                "the separator in double quotes"
            )
        named = {column: meant(cell) for column, cell in zip(columns, cells, strict=False) if column}
        rows.append(Row(path.name, number, named))
    return rows


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RosterDamaged(f"{path} can't be read ({error.strerror or error}); check its name") from error
    if len(raw) > MAX_BYTES:
        raise RosterDamaged(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB; no table of learners is")
    coding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(coding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise RosterDamaged(
            f"{path.name}, line {line}: not UTF-8 (byte {error.start}); save it again as “CSV UTF-8”"
        ) from error


def _lines(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that aren't empty, with the number under which an editor shows their beginning."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = max(SEPARATORS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    before = 0
    try:
        for cells in reader:
            number, before = before + 1, reader.line_num
            plain = [cell.replace("\u00a0", " ").strip().strip("\u200b\ufeff") for cell in cells]
            if any("\0" in cell or len(cell) > MAX_CELL for cell in plain):
                raise RosterDamaged(f"{name}, line {number}: a cell holds a zero byte or over {MAX_CELL:,} characters")
            if any(plain):
                yield number, plain
    except csv.Error as error:
        raise RosterDamaged(f"{name}, line {before + 1}: no line of a table ({error}); look at its quotes") from error


def _columns(header: Sequence[str], known: Mapping[str, Sequence[str]], where: str, needed: Sequence[str]) -> list[str]:
    """Our name of each column, empty where we don't know it."""
    ours = {plain(other): name for name, others in known.items() for other in (name, *others)}
    columns = [ours.get(plain(heading), "") for heading in header]
    for name in known:
        if columns.count(name) > 1:
            raise RosterDamaged(f'{where}: two columns are called "{name}"; remove one')
    missing = [name for name in needed if name not in columns]
    if missing:
        raise RosterDamaged(
            f"{where}: no column is called {' or '.join(missing)}; the first line must name them, such as "
            f"{', '.join(known)}"
        )
    return columns


def plain(heading: str) -> str:
    """A heading without what people write differently.

    >>> plain("E-Mail address"), plain("ID_number")
    ('emailaddress', 'idnumber')
    """
    return re.sub(r"[\W_]+", "", heading).casefold()


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula, also where it cuts cells at another separator than ours.

    >>> guarded("=1+1"), guarded("Ann"), guarded("Ann;=1+1"), guarded("a-b")
    ("'=1+1", 'Ann', "Ann;'=1+1", 'a-b')
    """
    inside = _INSIDE.sub(r"\1'\2", text.replace("\0", ""))
    return f"'{inside}" if inside.lstrip(" \u00a0")[:1] in tuple(FORMULA) else inside


def meant(cell: str) -> str:
    """The text of a cell that `guarded` or a person has marked as text with an apostrophe.

    >>> meant("'=1+1"), meant("O'Neil"), meant(guarded("a;=1"))
    ('=1+1', "O'Neil", 'a;=1')
    """
    return _MARKED.sub(r"\1\2", cell)


def written(rows: Iterable[Sequence[object]]) -> str:
    """The rows as a table with commas: each cell in quotes, guarded, and on one line."""
    into = io.StringIO(newline="")
    writer = csv.writer(into, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    for row in rows:
        writer.writerow([guarded(" ".join(str(cell).split())) for cell in row])
    return into.getvalue()
