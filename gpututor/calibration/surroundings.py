"""What on this machine would spoil a measurement: other work, a battery, a slow clock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

LOAD_PER_CPU = 0.5
"""Our choice: from here on a measurement shares cores with others for much of its time."""

SELF_CONTROLLED = ("intel_pstate", "intel_cpufreq", "amd-pstate", "amd-pstate-epp")
"""Drivers whose governor "powersave" is the usual one and still raises the clock. Source: Linux, admin-guide/pm."""


def warnings(root: Path = Path("/")) -> tuple[str, ...]:
    """One sentence for each thing that would spoil a measurement now; what can't be read is no warning."""
    return (*_load(), *_battery(root / "sys/class/power_supply"), *_governor(root / "sys/devices/system/cpu"))


def _load() -> Iterator[str]:
    try:
        load, n_cpus = os.getloadavg()[0], os.cpu_count() or 1
    except (OSError, AttributeError):
        return
    if load > LOAD_PER_CPU * n_cpus:
        yield (
            f"other programs keep {load:.1f} of this machine's {n_cpus} processors busy (load average of the last "
            "minute), so what was measured may be too slow; close them and measure again"
        )


def _battery(folder: Path) -> Iterator[str]:
    try:
        states = [_text(path) for path in sorted(folder.glob("*/status"))]
    except OSError:
        return
    if "Discharging" in states:
        yield "this machine runs on its battery, where processors are slower; plug it in and measure again"


def _governor(folder: Path) -> Iterator[str]:
    governor = _text(folder / "cpu0/cpufreq/scaling_governor")
    driver = _text(folder / "cpu0/cpufreq/scaling_driver")
    if governor == "powersave" and driver not in SELF_CONTROLLED:
        yield 'the processor\'s clock is held low (governor "powersave"); choose "performance" and measure again'


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
