"""One calibration from beginning to end, and its file."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gpututor.calibration import surroundings
from gpututor.errors import CalibrationFailed
from gpututor.own_machine import Calibration, OwnCard, OwnHost, as_toml, cpu_name, path
from gpututor.results import now_utc, write_at_once

if TYPE_CHECKING:
    from gpututor.calibration.bench import Bench

NEEDS_GPU = ("pinned_bytes_per_s", "pageable_bytes_per_s", "sync_us", "card")
Telling = Callable[[str, int, int], None]


def calibrate(tell: Telling, now: Callable[[], datetime] = now_utc) -> Calibration:
    """Measure this machine; `tell` hears what is measured, which of how many. Nothing is written.

    Raises:
        CalibrationFailed: neither the GPU nor the CPU gave a usable figure.
    """
    warnings = surroundings.warnings()  # before our own work is in the load average
    bench, why_none = _bench()
    reasons: dict[str, str] = {}
    noted: dict[str, float] = {}
    host: OwnHost | None = None
    card: OwnCard | None = None
    cpu, n_cpus = cpu_name() or "", os.cpu_count() or 1
    if bench is None:
        reasons = dict.fromkeys(NEEDS_GPU, why_none)
    else:
        from gpututor.calibration import on_gpu

        found = on_gpu.measured(bench, tell)
        host, card, noted = on_gpu.own_host(found, cpu, n_cpus), on_gpu.own_card(found, bench), on_gpu.noted(found)
        reasons = found.reasons
    if host is None:
        from gpututor.calibration import on_cpu

        seen = on_cpu.measured(tell)
        host = OwnHost(cpu, n_cpus, seen.times, seen.error_share, seen.how)
        warnings = (*warnings, *seen.warnings)
    at = now().isoformat(timespec="seconds")
    return Calibration(at, host, card, _versions(), noted, reasons, warnings)


def keep(found: Calibration) -> None:
    """Write the calibration's file, whole or not at all.

    Raises:
        CalibrationFailed: the folder can't be written to.
    """
    try:
        write_at_once(path(), as_toml(found))
    except OSError as error:
        raise CalibrationFailed(
            f"{path()} can't be written ({error.strerror or error}); set GPUTUTOR_HOME to a folder of yours"
        ) from error


def forget() -> bool:
    """Take the calibration away; whether there was one.

    Raises:
        CalibrationFailed: the file can't be deleted.
    """
    try:
        path().unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CalibrationFailed(f"{path()} can't be deleted ({error.strerror or error}); delete it by hand") from error
    return True


def _bench() -> tuple[Bench | None, str]:
    """This process's own GPU; None where there is none, or where it doesn't answer, and why."""
    import torch

    if not torch.cuda.is_available():
        return None, f"no GPU was found (torch {torch.__version__} sees none)"
    from gpututor.calibration.bench import this_bench

    try:
        return this_bench(), ""
    except RuntimeError as error:
        return None, f"the GPU does not answer torch ({str(error).splitlines()[0]})"


def _versions() -> Mapping[str, str]:
    import torch

    return {"torch": torch.__version__, "python": platform.python_version()}
