"""Learners' code in these tests runs in one sandbox a file, where torch is imported once; without one, as on a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpututor.errors import IsolationMissing
from gpututor.lab.isolation import bubblewrap, isolated
from gpututor.lab.learner_code import one_learner


@pytest.fixture(scope="module", autouse=True)
def _one_sandbox() -> Iterator[None]:
    try:
        way = bubblewrap()
    except IsolationMissing:
        yield
        return
    with isolated(way), one_learner():
        yield
