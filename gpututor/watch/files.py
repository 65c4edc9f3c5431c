"""The watch in files: a CSV row or a JSON line a tick, each written whole and at once, so Ctrl-C cuts none in half."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from gpututor.errors import WatchNotKept
from gpututor.measure.nvml.clocks import ClockReason
from gpututor.watch.source import Cpu, CpuProcess, Device, GpuProcess, Reading

NUMBERS = (
    "kernel_time_share",
    "sm_busy_share",
    "memory_used_bytes",
    "memory_total_bytes",
    "power_w",
    "power_limit_w",
    "sm_clock_hz",
    "temperature_c",
)
FIRST_SIMULATED = "sim0"


class Log(Protocol):
    """A place where readings are kept."""

    def note(self, reading: Reading) -> None:
        """Keep one reading, on disk when this returns."""

    def close(self) -> None:
        """No more is kept."""


def scalars(reading: Reading) -> dict[str, float | None]:
    """Every number of a reading by "part/name"; None where it wasn't read."""
    cpu = reading.cpu
    found: dict[str, float | None] = {
        "cpu/busy_share": cpu.busy_share,
        "cpu/own_busy_cores": cpu.own_busy_cores,
        "cpu/memory_used_bytes": cpu.memory_used_bytes,
        "cpu/memory_total_bytes": cpu.memory_total_bytes,
    }
    for device in reading.devices:
        found |= {f"{device.key}/{name}": getattr(device, name) for name in NUMBERS}
    return found


def _opened(path: Path) -> io.TextIOWrapper:
    """The file, new; a former watch is not overwritten.

    Raises:
        WatchNotKept: there is something in it, or it can't be made.
    """
    if path.is_file() and path.stat().st_size:
        raise WatchNotKept(f"{path} holds something already; choose another name, or delete it first")
    try:
        return path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise WatchNotKept(f"{path} can't be written ({error.strerror}); choose another place") from error


class JsonLines:
    """One JSON object a tick: the whole reading, with the reason for each value that is null."""

    def __init__(self, path: Path) -> None:
        self._file = _opened(path)

    def note(self, reading: Reading) -> None:
        """Write one line."""
        self._file.write(json.dumps(as_data(reading), allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """No more is kept."""
        self._file.close()


def as_data(reading: Reading) -> dict[str, Any]:
    """A reading as plain data for JSON."""
    return {**asdict(reading), "utc": _utc(reading)}


def readings_in(path: Path) -> tuple[Reading, ...]:
    """The readings that `--jsonl` kept; lines that hold none, such as one that was cut in half, are passed over.

    Raises:
        OSError: there is no such file, or it isn't ours to read.
    """
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(_from_data(json.loads(line)))
        except (ValueError, TypeError, KeyError):
            continue
    return tuple(found)


def _from_data(told: dict[str, Any]) -> Reading:
    cpu = told["cpu"] | {
        "core_shares": tuple(told["cpu"]["core_shares"]),
        "busiest": tuple(CpuProcess(**each) for each in told["cpu"]["busiest"]),
    }
    return Reading(told["time_s"], tuple(map(_device, told["devices"])), Cpu(**cpu), told["no_gpu"])


def _device(told: dict[str, Any]) -> Device:
    reasons, processes = told["clock_reasons"], told["processes"]
    parts = {
        "clock_reasons": None if reasons is None else tuple(ClockReason(**each) for each in reasons),
        "processes": None if processes is None else tuple(GpuProcess(**each) for each in processes),
    }
    return Device(**(told | parts))


class CsvRows:
    """One row a tick. The GPUs of the first tick have columns, and one simulated GPU, which may come later."""

    def __init__(self, path: Path) -> None:
        self._file = _opened(path)
        self._keys: tuple[str, ...] | None = None
        self.without_column: set[str] = set()  # keys of GPUs that came later

    def note(self, reading: Reading) -> None:
        """Write one row, and before the first one the header."""
        if self._keys is None:
            first = tuple(device.key for device in reading.devices)
            self._keys = first if FIRST_SIMULATED in first else (*first, FIRST_SIMULATED)
            self._write([name for name, _ in self._cells(reading, {})])
        devices = {device.key: device for device in reading.devices}
        self.without_column |= devices.keys() - set(self._keys)
        self._write(["" if value is None else str(value) for _, value in self._cells(reading, devices)])
        self._file.flush()

    def close(self) -> None:
        """No more is kept."""
        self._file.close()

    def _write(self, cells: Sequence[str]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        self._file.write(line.getvalue())

    def _cells(self, reading: Reading, devices: Mapping[str, Device]) -> list[tuple[str, object]]:
        cpu = reading.cpu
        cells: list[tuple[str, object]] = [
            ("time_s", f"{reading.time_s:.3f}"),
            ("utc", _utc(reading)),
            ("cpu_busy_share", _rounded(cpu.busy_share)),
            ("cpu_usable_cores", cpu.n_usable),
            ("cpu_own_busy_cores", _rounded(cpu.own_busy_cores)),
            ("cpu_memory_used_bytes", cpu.memory_used_bytes),
            ("cpu_memory_total_bytes", cpu.memory_total_bytes),
        ]
        for key in self._keys or ():
            device = devices.get(key)
            cells.append((f"{key}_name", device.name if device else None))
            cells += [(f"{key}_{name}", _rounded(getattr(device, name)) if device else None) for name in NUMBERS]
            cells.append((f"{key}_clock_reasons", _named(device) if device else None))
        return cells


def _named(device: Device) -> str | None:
    """Short names of what holds the clocks; "nothing" is a reading too."""
    reasons = device.clock_reasons
    return None if reasons is None else "; ".join(reason.name for reason in reasons) or "nothing"


def _rounded(value: float | None) -> float | None:
    return round(value, 4) if isinstance(value, float) else value


def _utc(reading: Reading) -> str:
    return datetime.fromtimestamp(reading.time_s, timezone.utc).isoformat(timespec="milliseconds")
