"""Tables as people and spreadsheets make them are read or refused with their line; what is written is no formula."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.errors import RosterDamaged
from gpututor.grading import sheets

KNOWN = {"id": ("id number",), "name": ("full name",)}


def read(tmp_path, raw, needed=("id", "name")):
    path = tmp_path / "roster.csv"
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return [dict(row.cells) for row in sheets.read(path, KNOWN, needed)]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("id,name\n007,Zoë\n", id="plain"),
        pytest.param("\ufeffid,name\n007,Zoë\n", id="with a mark in front"),
        pytest.param("id;name\r\n007;Zoë\r\n", id="semicolons"),
        pytest.param("id\tname\n007\tZoë", id="tabs, no last line end"),
        pytest.param("id,name\n007,Zoë\n".encode("utf-16"), id="UTF-16"),
        pytest.param('"id","name"\n"007"," Zoë "\n', id="quoted"),
        pytest.param("\n\nID Number,Full_Name\n\n007,Zoë\n,\n\n", id="other headings, empty lines"),
        pytest.param("name,id,mood\nZoë,007,fine\n", id="another order, a column of theirs"),
        pytest.param("id,name\r007,Zoë\r", id="old line ends"),
        pytest.param("id,name\n007,Zoë\u00a0\n", id="a blank of a spreadsheet's"),
    ],
)
def test_one_table_in_many_dialects(tmp_path, raw):
    assert read(tmp_path, raw) == [{"id": "007", "name": "Zoë"}]


def test_a_cell_may_hold_the_separator_quotes_and_umlauts(tmp_path):
    assert read(tmp_path, 'id,name\n1,"Müller, ""Jo"""\n') == [{"id": "1", "name": 'Müller, "Jo"'}]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"id,name\n1,Zo\xeb\n", "line 2: not UTF-8", id="Latin-1"),
        pytest.param("id,mood\n1,fine\n", "no column is called name", id="a column is missing"),
        pytest.param("id,id number,name\n1,2,A\n", 'two columns are called "id"', id="a column twice"),
        pytest.param("id,name\n1,A,B\n", "line 2: 3 cells under 2 headings", id="a comma without quotes"),
        pytest.param('id,name\n1,"A\n', "line 2", id="a quote without an end"),
        pytest.param("id,name\n1,A\0\n", "line 2", id="a zero byte"),
        pytest.param("", "no column is called", id="nothing"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(tmp_path, raw, said):
    with pytest.raises(RosterDamaged, match=said):
        read(tmp_path, raw)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(RosterDamaged, match="can't be read"):
        sheets.read(tmp_path / "none.csv", KNOWN, ("id",))


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
@pytest.mark.parametrize("before", ["", " ", "a;", "a,", "a\t", "a; ", '"', 'x","', "a\n"])
def test_no_part_of_a_cell_begins_like_a_formula_at_any_separator(sign, before):
    text = sheets.written([[f"{before}{sign}1+1"]])

    for separator in ",;\t":
        for cells in csv.reader(io.StringIO(text), delimiter=separator):
            assert not any(cell.lstrip(' "').startswith(sign) for cell in cells)


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4), max_size=4))
def test_what_is_written_is_read_back_guarded_and_on_one_line(rows):
    back = list(csv.reader(io.StringIO(sheets.written(rows), newline="")))

    assert back == [[sheets.guarded(" ".join(cell.split())) for cell in row] for row in rows]
    assert not any(cell[:1] in tuple(sheets.FORMULA) for row in back for cell in row if cell)


def test_ordinary_names_stay_as_they_are():
    names = ["Ann-Marie O'Neil", "Müller, Jo", "7", "a@b.example", "x = 1"]

    assert [sheets.guarded(name) for name in names] == names
