"""A few seconds of random faults at a hundred times the usual rate; an hour is `python tools/soak.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.measure.fake_nvml.driver import MISSING, can_build

SOAK = Path(__file__).resolve().parent.parent.parent / "tools" / "soak.py"


@pytest.fixture(scope="module")
def soaked():
    if not can_build():
        pytest.skip(MISSING)
    command = [sys.executable, str(SOAK), "--seconds", "8", "--seed", "5", "--interval", "0.02", "--every", "0.02"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_no_value_is_wrong_and_none_is_missing_without_a_reason(soaked):
    assert soaked["wrong"] == []


def test_every_kind_of_fault_came(soaked):
    assert set(soaked["done"]) == set("fail heal slow hang senseless lose forget fork restart keep abandon".split())


def test_values_were_read_and_values_were_missing(soaked):
    assert soaked["n_values"] > 1000
    assert soaked["n_missing"] > 1000


def test_no_thread_is_left(soaked):
    assert soaked["n_threads_left"] == 0


def test_no_open_file_is_left(soaked):
    assert soaked["n_files_left"] == 0


def test_memory_does_not_grow(soaked):
    assert soaked["grown_bytes"] < 10 * 2**20
