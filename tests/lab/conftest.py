from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from gpututor.lab.pool import Lab

EXPERIMENTS = "experiments_for_tests"


@pytest.fixture(scope="session", autouse=True)
def _workers_find_the_experiments() -> Iterator[None]:
    """Workers look for this folder's experiments as for any other module."""
    with pytest.MonkeyPatch.context() as patch:
        paths = filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH")))
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        yield


@pytest.fixture(scope="session")
def shared_lab(_workers_find_the_experiments: None) -> Iterator[Lab]:
    """One lab without torch for the tests that leave their worker alive."""
    lab = Lab(2, allowed=[EXPERIMENTS], torch=False)
    yield lab
    lab.close()


@pytest.fixture
def own_lab() -> Iterator[Lab]:
    """A lab of one worker for a test that counts or kills workers."""
    lab = Lab(1, allowed=[EXPERIMENTS], torch=False)
    yield lab
    lab.close()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Whether something comes true within 5 s."""

    def wait(is_so: Callable[[], bool]) -> bool:
        until_s = time.monotonic() + 5
        while time.monotonic() < until_s:
            if is_so():
                return True
            time.sleep(0.02)
        return False

    return wait


@pytest.fixture
def gone(eventually: Callable[[Callable[[], bool]], bool]) -> Callable[[int], bool]:
    """Whether a process ends within 5 s (a zombie has ended)."""

    def ended(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return lambda pid: eventually(lambda: ended(pid))
