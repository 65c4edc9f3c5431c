"""From file to answer: `gpututor explain` beside HTA (traceinsight) and torch_tb_profiler, on the same traces.

    python -m tools.trace_readers FOLDER --other PYTHON

PYTHON is an interpreter that has `traceinsight` and `torch-tb-profiler` (both from PyPI; they want other versions of
pandas than some of what is here). Each reader is a process of its own, imports included, and is asked for what it tells
of idle time. Times are processor seconds, so that a busy machine matters less; memory is the process's peak.
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
    process = subprocess.Popen(
        [python, "-c", code, str(trace)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ
    )
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Took(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode, said)


def main() -> int:
    """Print a line for each trace and reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--other", default=sys.executable, help="interpreter with the other two readers")
    parser.add_argument("--name", action="append", help="only traces whose name begins so")
    told = parser.parse_args()
    readers = {"gpututor": (sys.executable, OURS), "HTA": (told.other, HTA), "torch_tb": (told.other, TENSORBOARD)}
    for path in sorted(told.folder.glob("*.json.gz")):
        if told.name and not path.name.startswith(tuple(told.name)):
            continue
        with tempfile.TemporaryDirectory() as place:
            trace = Path(place) / f"worker0.1.pt.trace.json{'.gz' if path.suffix == '.gz' else ''}"
            shutil.copy(path, trace)
            ours = None
            for name, (python, code) in readers.items():
                one = took(python, code, trace)
                ours = ours or one
                beside = f"{one.cpu_s / ours.cpu_s:>6.1f} x time {one.peak_mib / ours.peak_mib:>5.1f} x memory"
                end = beside if one.rc == 0 else f"failed: {one.said[:70]}"
                print(f"{path.name:<40} {name:<9} {one.cpu_s:>6.2f} s {one.peak_mib:>6.0f} MiB  {end}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
