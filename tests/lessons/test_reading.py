"""The reader of lessons reads what stands there."""

from __future__ import annotations

import ast

import pytest

from tests.lessons.reading import SLOT, Notebook, n_words, text

SOURCE = '''
import marimo

app = marimo.App()

with app.setup:
    import marimo as mo


@app.cell
def one():
    shown = mo.ui.slider(1, 2)
    hidden = mo.ui.slider(1, 2)
    return hidden, shown


@app.cell
def two(hidden, shown):
    n = hidden.value
    mo.hstack([shown])
    return


@app.cell
def three():
    mo.md(f"""It takes {1 + 1} ms.""")
    late = 1
    return (late,)
'''


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "07_drawn.py"
    path.write_text(SOURCE, encoding="utf-8")
    return Notebook(path)


def test_a_control_is_found_with_its_cell(notebook):
    assert notebook.controls() == {"shown": "one", "hidden": "one"}


def test_a_control_of_which_only_the_value_is_used_is_not_shown(notebook):
    assert set(notebook.controls()) - notebook.shown_names() == {"hidden"}


def test_a_cell_shows_its_last_expression_only(notebook):
    assert notebook.showing_cells == ["two"]


def test_a_placeholder_is_one_mark(notebook):
    assert notebook.markdown() == {"three": f"It takes {SLOT} ms."}


def test_a_constant_is_its_own_text():
    assert text(ast.parse("'a b'", mode="eval").body) == "a b"


@pytest.mark.parametrize(
    ("prose", "n"),
    [("## Two words", 2), ("- one\n- *two*", 2), (f"{SLOT} of $a + b$", 3), ("$$\na = b\n$$ holds", 2), ("k / max", 2)],
)
def test_words_are_counted_as_a_reader_counts_them(prose, n):
    assert n_words(prose) == n
