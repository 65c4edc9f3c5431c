"""What several test files share: the published measurements, Chromium, and skips that give their reason."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpututor.errors import IsolationMissing
from gpututor.lab import isolation
from gpututor.lab.isolation import Isolation

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session", autouse=True)
def _nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty folder in the place of the user's own, which may hold progress and a calibration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUTUTOR_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of measurements that others published, which is not part of the repository."""
    folder = Path(os.environ.get("GPUTUTOR_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no published measurements in {folder}; set GPUTUTOR_SHARED to their folder")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium; without one the test is skipped, or fails if GPUTUTOR_REQUIRE_BROWSER=1."""
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        reason = f"no browser called {', '.join(CHROMIUM_NAMES)} on the path"
        if os.environ.get("GPUTUTOR_REQUIRE_BROWSER") == "1":
            pytest.fail(f"{reason}, and GPUTUTOR_REQUIRE_BROWSER=1 asks for one")
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def bubblewrap() -> Isolation:
    """The sandbox; where there is none the test is skipped, or fails if GPUTUTOR_REQUIRE_BUBBLEWRAP=1."""
    try:
        return isolation.bubblewrap()
    except IsolationMissing as missing:
        if os.environ.get("GPUTUTOR_REQUIRE_BUBBLEWRAP") == "1":
            pytest.fail(f"{missing}; GPUTUTOR_REQUIRE_BUBBLEWRAP=1 asks for it")
        pytest.skip(str(missing))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked gpu where torch sees no CUDA device."""
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device here")


EACH_BY_ITSELF = ("tests/lessons/test_course.py", "tests/lessons/test_in_browser.py")
"""Files whose tests come in long rows, one for each lesson, which may run side by side."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one process when several work side by side, so that its fixtures are made once."""
    for item in items:
        file = item.path.relative_to(ROOT).as_posix()
        lesson = re.search(r"\[(\d\d_\w+?)[-\]]", item.nodeid) if file in EACH_BY_ITSELF else None
        item.add_marker(pytest.mark.xdist_group(f"{file} {lesson[1] if lesson else ''}"))
