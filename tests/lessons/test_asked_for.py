"""Everything that the course was asked for is shown somewhere, and this list of where is kept.

A lesson that is listed and not written yet asks for nothing; from the moment its file is there, all of its places must
be there too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import pytest

from gpututor.exercises.registry import exercise
from gpututor.page.course import is_ready, lesson
from tests.lessons.asked_for import POINTS, Code, Place, Point
from tests.lessons.reading import ROOT, Notebook

TELLING = ("experiments", "page/lessons", "exercises", "jobs", "doctor", "watch")
"""Where what a lesson shows may stand apart from its notebook."""

PLACES = tuple((point, place) for point in POINTS for place in point.places if isinstance(place, Place))
CODE = sorted({place.name for point in POINTS for place in point.places if isinstance(place, Code)})
WRITTEN = [(point, place) for point, place in PLACES if is_ready(lesson(place.lesson))]
each_place = pytest.mark.parametrize(
    ("point", "place"), WRITTEN, ids=lambda part: f"{part.lesson:02d}" if isinstance(part, Place) else part.words[0]
)


def notebook(number: int) -> Notebook:
    return Notebook(ROOT / "lessons" / lesson(number).file)


@lru_cache
def told_in(number: int) -> str:
    """The lesson's source, and that of our modules that it names, or that these name."""
    seen: dict[Path, str] = {}
    waiting = [notebook(number).source]
    for _ in range(3):
        names = {name for text in waiting for name in named(text)}
        fresh = [path for path in map(module_file, sorted(names)) if path is not None and path not in seen]
        waiting = [path.read_text(encoding="utf-8") for path in fresh]
        seen |= dict(zip(fresh, waiting, strict=True))
    return "\n".join([notebook(number).source, *seen.values()])


def named(source: str) -> set[str]:
    """The names of our modules in a source, such as in an import or as "module:function"."""
    several = {
        f"{base}.{name.strip().partition(' as ')[0]}"
        for base, names in re.findall(r"from (gpututor[\w.]*) import \(?([\w, \n]+)", source)
        for name in names.split(",")
    }
    return set(re.findall(r"gpututor\.[\w.]+", source)) | several


def module_file(name: str) -> Path | None:
    path = ROOT / (name.replace(".", "/") + ".py")
    return path if path.is_file() and any(f"gpututor/{part}/" in path.as_posix() for part in TELLING) else None


@each_place
def test_the_cell_or_exercise_that_shows_a_point_exists(point, place):
    cells = [cell.name for cell in notebook(place.lesson).cells]

    assert place.cell is None or place.cell in cells
    assert place.exercise is None or exercise(place.exercise).lesson == place.lesson


@each_place
def test_the_lesson_speaks_of_what_a_point_asks_for(point, place):
    told = told_in(place.lesson).lower()

    assert [word for word in place.says if word.lower() not in told] == []


@pytest.mark.parametrize("code", CODE)
def test_the_code_that_shows_a_point_exists(code):
    module, _, name = code.partition(":")

    assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.words[0])
def test_a_point_says_what_it_is_about_and_where(point):
    assert point.about
    assert any(isinstance(place, Place) for place in point.places)
    assert all(place.cell or place.exercise or place.says for place in point.places if isinstance(place, Place))


# --- the request itself ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(shared) -> list[str]:
    """The first column of the request's table, in small letters."""
    path = shared / "course.md"
    if not path.is_file():
        pytest.skip(f"the request's table isn't in {shared}")
    table = path.read_text(encoding="utf-8").partition("| seed statement |")[2].partition("\n\n")[0]
    return [line.split("|")[1].strip().lower() for line in table.splitlines()[2:] if line.startswith("|")]


def points_on(row: str) -> list[Point]:
    return [point for point in POINTS if all(word in row for word in point.words)]


def test_every_row_of_the_request_has_its_point(asked):
    assert asked
    assert [row for row in asked if len(points_on(row)) != 1] == []


def test_every_point_is_one_row_of_the_request(asked):
    found = [points_on(row)[0] for row in asked]

    assert found == list(POINTS)


# --- what is still missing -------------------------------------------------------------------------------------


def test_nothing_that_was_asked_for_is_still_to_be_written():
    wanted = {
        place.lesson: [point.about for point, each in PLACES if each.lesson == place.lesson] for _, place in PLACES
    }
    missing = set(wanted) - {place.lesson for _, place in WRITTEN}
    if missing:
        still = "; ".join(f"{n} {lesson(n).title} ({', '.join(wanted[n])})" for n in sorted(missing))
        pytest.skip(f"lessons that are not there yet, and what they are to show: {still}")

    assert len(WRITTEN) == len(PLACES)
