from pathlib import Path

import pytest

from gpututor import paths
from gpututor.errors import DataFileError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An empty package folder inside an empty clone."""
    inside = tmp_path / "gpututor"
    inside.mkdir()
    monkeypatch.setattr(paths, "_PACKAGE", inside)
    return inside


def put(folder: Path, name: str) -> Path:
    folder.mkdir()
    (folder / name).touch()
    return folder


def test_a_clone_finds_its_tables_beside_the_package(package):
    beside = put(package.parent / "data", "cards.toml")

    assert paths.data_dir() == beside


def test_a_wheel_finds_its_tables_inside_the_package(package):
    inside = put(package / "_data", "cards.toml")

    assert paths.data_dir() == inside


def test_tables_inside_the_package_win_over_a_folder_beside_it(package):
    inside = put(package / "_data", "cards.toml")
    put(package.parent / "data", "cards.toml")

    assert paths.data_dir() == inside


def test_a_foreign_folder_called_data_is_not_ours(package):
    put(package.parent / "data", "customers.csv")

    with pytest.raises(DataFileError, match=r"found no cards\.toml in .*_data and .*data; the installation"):
        paths.data_dir()


def test_a_clone_finds_its_lessons_beside_the_package(package):
    beside = put(package.parent / "lessons", "00_start_here.py")

    assert paths.lessons_dir() == beside


def test_a_package_without_lessons_says_what_to_do(package):
    with pytest.raises(DataFileError, match="install gpututor again"):
        paths.lessons_dir()
