"""Write data/host_operators.toml: what operators cost the host of a recorded server.

`python -m tools.calibrate.host_operators` reads one public PyTorch trace of a ResNet-50 training run on a V100-SXM2
server, the one that the amounts in data/hosts.toml come from, and keeps medians alone.
"""

from __future__ import annotations

import json

from gpututor.calibration.operators import NAMES, amounts_ns, medians_us
from gpututor.paths import data_dir
from gpututor.results import write_at_once
from gpututor.trace.events import sorted_out
from gpututor.trace.kineto import read
from gpututor.trace.opening import opened
from tools.calibrate.common import measured_dir

TRACE = "v100-ns-healthy.json.gz"
SOURCE = (
    "HolisticTraceAnalysis, tests/data/ns_resolution_trace (rank 0): ResNet-50 training, V100-SXM2-32GB, PyTorch 2.x, "
    "DDP, times in ns"
)
WHY = "the amounts in data/hosts.toml are those of this recording, with the profiler on"
HEAD = """\
# What operators cost the host of a recorded server, with the profiler on; gpututor/calibration/operators.py reads it.
# Written by tools/calibrate/host_operators.py. `median_us` is the operator's own time without what it calls, or the
# time between two operators (written with an arrow); `n_per_step` is how often a training step has it.
"""


def text() -> str:
    """The file's text."""
    path = measured_dir().parent / "traces" / TRACE
    amounts = amounts_ns(sorted_out(opened(path).events).host)
    n_steps = len(read(path).steps)
    medians = medians_us(amounts)
    fields = {"source": SOURCE, "times": 1.0, "times_source": WHY}
    parts = [HEAD, "\n[server]\n", *(f"{k} = {json.dumps(v)}\n" for k, v in fields.items())]
    for name in sorted(NAMES & set(medians)):
        parts += [f"\n[operator.{json.dumps(name, ensure_ascii=False)}]\n"]
        parts += [f"median_us = {medians[name]:.3g}\nn_per_step = {len(amounts[name]) / n_steps:g}\n"]
    return "".join(parts)


def main() -> None:
    """Write the table and print it."""
    found = text()
    write_at_once(data_dir() / "host_operators.toml", found)
    print(found)


if __name__ == "__main__":
    main()
