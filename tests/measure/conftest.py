"""The fake NVIDIA driver, built once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.measure.fake_nvml.driver import MISSING, FakeDriver, build, can_build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    if not can_build():
        pytest.skip(MISSING)
    return FakeDriver(build(tmp_path_factory.mktemp("driver")))


@pytest.fixture(scope="session")
def built_old(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    """A driver without what came after R450."""
    if not can_build():
        pytest.skip(MISSING)
    return FakeDriver(build(tmp_path_factory.mktemp("old-driver"), "-DOLD"))


@pytest.fixture
def driver(built: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """Two healthy H100s, until it says something else."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    with built.in_place():
        yield built
