"""What the front page says on a reader's own machine, and what in a class."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import gpututor.page as gt
from gpututor import readers
from gpututor.page.front import NAME_OF
from gpututor.readers import Reader
from gpututor.store import Store


@pytest.fixture
def in_a_class(monkeypatch):
    """A server that knows who reads."""
    monkeypatch.setattr(readers, "_tell", lambda: Reader("ann"))


def test_at_home_progress_stays_here():
    assert gt.kept_where() == "Your progress stays on this machine."


@pytest.mark.usefixtures("in_a_class")
def test_in_a_class_progress_is_the_servers_and_the_instructor_sees_it():
    assert "this machine" not in gt.kept_where()
    assert "server" in gt.kept_where()
    assert "whoever teaches the class sees it" in gt.kept_where()


def test_at_home_an_instructor_is_told_of_the_address_and_of_the_workshop():
    assert "&learner=" in gt.class_notes()
    assert "gpututor workshop" in gt.class_notes()


@pytest.mark.usefixtures("in_a_class")
def test_in_a_class_nobody_is_told_to_change_an_address_that_counts_for_nothing():
    assert "learner=" not in gt.class_notes()
    assert "/workshop" in gt.class_notes()


@pytest.mark.usefixtures("in_a_class")
@pytest.mark.parametrize("names", [(), ("NVIDIA H200",)])
def test_in_a_class_the_gpu_is_the_servers(names):
    whose, found, remark = gt.gpu_fact(names, "no driver")

    assert (whose, found) == ("Server's GPU", ", ".join(names) or "none found")
    assert "yours" not in remark
    assert "Here" not in remark


def test_at_home_the_page_says_why_no_gpu_was_found():
    assert gt.gpu_fact((), "no driver is installed")[2].endswith("Here no driver is installed.")


def test_a_typed_name_is_kept_for_the_next_visit(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    store = Store("zoë")
    gt.name_control(store)._on_change("Zoë")

    assert gt.name_control(Store("zoë")).value == "Zoë"
    assert store.get(*NAME_OF) == "Zoë"


def test_a_damaged_name_is_an_empty_field(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    store = Store("zoë")
    store.put(*NAME_OF, [1])

    assert gt.name_control(store).value == ""


def test_no_name_of_the_furniture_becomes_a_module_once_all_are_loaded():
    for path in Path(gt.__file__).parent.glob("*.py"):
        import_module(f"gpututor.page.{path.stem}".removesuffix(".__init__"))

    assert [name for name in gt.__all__ if isinstance(vars(sys.modules["gpututor.page"]).get(name), ModuleType)] == []
