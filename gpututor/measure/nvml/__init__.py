"""Reading NVIDIA GPUs through NVML, on machines where it answers half of the questions or none.

`Sampler` reads on in the background; `read` and `find_gpus` take one look. Times are nanoseconds since sampling began.
"""

from __future__ import annotations

from gpututor.measure.nvml.clocks import ClockReason, clock_reasons
from gpututor.measure.nvml.columns import Figure
from gpututor.measure.nvml.devices import Device
from gpututor.measure.nvml.metrics import METRICS, Metric, metric
from gpututor.measure.nvml.once import Gpus, Readings, find_gpus, read
from gpututor.measure.nvml.readings import (
    Cost,
    Energy,
    GpuSummary,
    Held,
    Note,
    Reading,
    Sampled,
    Series,
    Summary,
)
from gpututor.measure.nvml.records import load, save
from gpututor.measure.nvml.sampler import INTERVAL_S, Sampler

__all__ = [
    "INTERVAL_S",
    "METRICS",
    "ClockReason",
    "Cost",
    "Device",
    "Energy",
    "Figure",
    "GpuSummary",
    "Gpus",
    "Held",
    "Metric",
    "Note",
    "Reading",
    "Readings",
    "Sampled",
    "Sampler",
    "Series",
    "Summary",
    "clock_reasons",
    "find_gpus",
    "load",
    "metric",
    "read",
    "save",
]
