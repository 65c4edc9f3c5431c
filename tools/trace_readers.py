"""From file to answer: `gpututor explain` beside HTA (traceinsight) and torch_tb_profiler, on the same traces.

    python -m tools.trace_readers FOLDER --other PYTHON

PYTHON is an interpreter that has `traceinsight` and `torch-tb-profiler` (both from PyPI; they want other versions of
pandas than some of what is here). Each reader is a process of its own, imports included, and is asked for what it tells
of idle time. Each is run once first, so that its modules are compiled as pip leaves them, and then `--times` times in
turn with the others; the medians are shown. Times are processor seconds, so that a busy machine matters less; memory is
the process's peak.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

OURS = """
import sys
from gpututor.explain import explain
from gpututor.explain.report_json import document
document(explain(sys.argv[1]))
"""
HTA = """
import sys, logging
logging.disable(logging.CRITICAL)
try:
    from traceinsight.trace_analysis import TraceAnalysis
except ImportError:
    from hta.trace_analysis import TraceAnalysis
found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
found.get_temporal_breakdown(visualize=False)
found.get_idle_time_breakdown(ranks=[0], visualize=False)
"""
TENSORBOARD = """
import sys, os, logging
logging.disable(logging.CRITICAL)
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.run import RunProfile
from torch_tb_profiler.profiler.loader import RunLoader
from torch_tb_profiler.io.cache import Cache
profile = RunProfileData.parse("worker0", "0", sys.argv[1], os.path.dirname(sys.argv[1]))
profile.process() if hasattr(profile, "process") else None
"""


@dataclass(frozen=True, slots=True)
class Took:
    """Processor seconds and peak memory in MiB of one process; `rc` other than 0 where it failed."""

    cpu_s: float
    peak_mib: float
    rc: int
    said: str


def took(python: str, code: str, trace: Path) -> Took:
    """Run one reader on one trace."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [python, "-c", code, str(trace)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=compiled
    )
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Took(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode, said)


def compared(readers: dict[str, tuple[str, str]], trace: Path, n_times: int) -> dict[str, Took]:
    """The median run of each reader, their runs in turn."""
    rounds = [{name: took(python, code, trace) for name, (python, code) in readers.items()} for _ in range(n_times)]
    return {name: sorted((each[name] for each in rounds), key=lambda t: t.cpu_s)[n_times // 2] for name in readers}


def main() -> int:
    """Print a line for each trace and reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--other", default=sys.executable, help="interpreter with the other two readers")
    parser.add_argument("--name", action="append", help="only traces whose name begins so")
    parser.add_argument("--times", type=int, default=3, help="how often each reads each trace (default: 3)")
    told = parser.parse_args()
    readers = {"gpututor": (sys.executable, OURS), "HTA": (told.other, HTA), "torch_tb": (told.other, TENSORBOARD)}
    names = tuple(told.name or ("",))
    traces = [path for path in sorted(told.folder.glob("*.json.gz")) if path.name.startswith(names)]
    for k, path in enumerate(traces):
        with tempfile.TemporaryDirectory() as place:
            trace = Path(place) / "worker0.1.pt.trace.json.gz"
            shutil.copy(path, trace)
            if k == 0:
                compared(readers, trace, 1)
            ours = None
            for name, one in compared(readers, trace, told.times).items():
                ours = ours or one
                beside = f"{one.cpu_s / ours.cpu_s:>6.1f} x time {one.peak_mib / ours.peak_mib:>5.1f} x memory"
                end = beside if one.rc == 0 else f"failed: {one.said[:70]}"
                print(f"{path.name:<40} {name:<9} {one.cpu_s:>6.2f} s {one.peak_mib:>6.0f} MiB  {end}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
