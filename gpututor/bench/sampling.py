"""What the NVML sampler takes of one core at five rounds a second, measured in a process of its own.

On a machine with a driver it reads that. Elsewhere a clone of the repository has a fake one, which answers at once; its
figure holds the sampler and its binding, and nothing of a driver. Processor time is that of the whole process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

BAR_SHARE = 0.002  # of one core
MEASURED_S = 3.0

SOURCE = Path(__file__).resolve().parent.parent.parent / "tests" / "measure" / "fake_nvml" / "fake_nvml.c"

# Imports and the opening of the driver are over when the clocks are read; collected first, so that no collection of
# what they left falls into the few rounds.
_CHILD = """
import gc, json, sys, time
from gpututor.measure.nvml import Sampler
with Sampler() as sampler:
    if sampler.reason is None:
        gc.collect()
        began, cpu_began = time.perf_counter(), time.process_time()
        time.sleep(float(sys.argv[1]))
        cpu_s, wall_s = time.process_time() - cpu_began, time.perf_counter() - began
    else:
        cpu_s = wall_s = None
cost = sampler.summary().cost
print(json.dumps([sampler.reason, len(sampler.devices), cpu_s, wall_s, cost.mean_s]))
"""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampler's own cost: `core_share` of one core, `round_s` a round; None with a `reason` where not measured.

    `driver` is "real", "fake" or "none".
    """

    driver: str
    n_gpus: int = 0
    core_share: float | None = None
    round_s: float | None = None
    reason: str | None = None

    @property
    def within_bar(self) -> bool | None:
        """Whether it stays below the bar; None where it wasn't measured."""
        return None if self.core_share is None else self.core_share <= BAR_SHARE

    def as_fields(self) -> dict[str, object]:
        """All figures as plain data for JSON."""
        return asdict(self) | {"within_bar": self.within_bar}


def sampling(seconds: float = MEASURED_S) -> Sampling:
    """The sampler's cost on this machine, with the driver that is here, else with a fake one."""
    from gpututor.measure.nvml import find_gpus

    found = find_gpus()
    if found.names:
        return _measured("real", {**os.environ}, seconds)
    if not SOURCE.is_file() or shutil.which("gcc") is None or sys.platform != "linux":
        return Sampling("none", reason=f"{found.reason}; a fake driver needs Linux, gcc and a clone of the repository")
    with tempfile.TemporaryDirectory(prefix="gpututor-") as folder:
        library = Path(folder) / "libnvidia-ml.so.1"
        built = subprocess.run(
            ["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)],  # noqa: S607  # found above
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode:
            return Sampling("none", reason=f"{found.reason}; gcc could not build the fake one")
        return _measured("fake", {**os.environ, "LD_LIBRARY_PATH": folder, "FAKE_NVML": "count=1"}, seconds)


def _measured(driver: str, environ: dict[str, str], seconds: float) -> Sampling:
    command = [sys.executable, "-c", _CHILD, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return Sampling("none", reason=f"the measuring process ended: {said[-1] if said else done.returncode}")
    reason, n_gpus, cpu_s, wall_s, round_s = json.loads(done.stdout)
    if cpu_s is None:
        return Sampling("none", reason=reason)
    return Sampling(driver, n_gpus, cpu_s / wall_s, round_s)
