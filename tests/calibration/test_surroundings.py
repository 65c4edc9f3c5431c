"""What would spoil a measurement is said, and what can't be read is not."""

from __future__ import annotations

import os

import pytest

from gpututor.calibration import surroundings


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 0.1, 0.1), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)


def put(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_a_quiet_machine_that_says_nothing_gives_no_warning(quiet, tmp_path):
    assert surroundings.warnings(tmp_path) == ()


def test_more_than_half_of_the_processors_busy_is_a_warning(quiet, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (2.1, 0.0, 0.0), raising=False)

    (warning,) = surroundings.warnings(tmp_path)

    assert warning.startswith("other programs keep 2.1 of this machine's 4 processors busy")


def test_a_system_without_load_average_is_none(quiet, tmp_path, monkeypatch):
    monkeypatch.delattr(os, "getloadavg")

    assert surroundings.warnings(tmp_path) == ()


@pytest.mark.parametrize(("state", "n"), [("Discharging\n", 1), ("Charging\n", 0), ("Full\n", 0)])
def test_a_battery_that_empties_is_a_warning(quiet, tmp_path, state, n):
    put(tmp_path, "sys/class/power_supply/BAT0/status", state)

    assert len(surroundings.warnings(tmp_path)) == n


@pytest.mark.parametrize(
    ("governor", "driver", "n"),
    [("powersave", "acpi-cpufreq", 1), ("powersave", "intel_pstate", 0), ("performance", "acpi-cpufreq", 0)],
)
def test_a_clock_that_is_held_low_is_a_warning(quiet, tmp_path, governor, driver, n):
    put(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor)
    put(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", driver)

    assert len(surroundings.warnings(tmp_path)) == n
