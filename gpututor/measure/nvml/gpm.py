"""Metrics of the SMs themselves, on Hopper and later: two samples of the card's performance monitor, compared.

Nothing is taken for supported before a real pair of samples has worked: shares of a virtual GPU say that they can, and
can't (dcgm-exporter pull request 701).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

from gpututor.measure.nvml.contact import Answer, Contact
from gpututor.measure.nvml.failures import Meaning, Refusal, refusal_of
from gpututor.measure.nvml.questions import SELDOM_S, Question

# Source: nvml.h, nvmlGpmMetricId_t; percent, and MiB/s for PCIe.
_MIB = 2.0**20
METRICS = {
    "sm_share": (2, 0.01),
    "occupancy_share": (3, 0.01),
    "tensor_share": (5, 0.01),
    "dram_share": (10, 0.01),
    "pcie_tx_bytes_per_s": (20, _MIB),
    "pcie_rx_bytes_per_s": (21, _MIB),
}

APART_NS = 120_000_000
"""Two samples less than 100 ms apart give values without a meaning (NVIDIA, DCGM issue 310); the rest is our margin."""

_NOT_HERE = Refusal(None, "the card has no monitor that NVML reads; Hopper and later have", Meaning.NOT_HERE)
_FIRST = Refusal(None, "the second of two samples is still to come", Meaning.NOTHING_NEW)


class Monitor:
    """The two samples of one GPU; the older one is replaced by each new one.

    Their distance is taken by a clock of their own, since a slow call before one of them moves it within its round.
    """

    def __init__(self, clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self.clock_ns = clock_ns
        self.older: Any = None
        self.newer: Any = None
        self.older_ns = 0
        self.table: Any = None
        self.rows: list[Any] = []

    def __call__(self, gpu: Contact) -> Sequence[Answer] | Refusal:
        """What happened between the last sample and now; nothing new where that is too short."""
        nvml = gpu.nvml
        if self.table is None:
            return self._begin(gpu)
        if self.clock_ns() - self.older_ns < APART_NS:
            return _FIRST
        _sample(gpu, self.newer)
        newer_ns = self.clock_ns()
        self.table.sample1, self.table.sample2 = self.older, self.newer
        nvml.nvmlGpmMetricsGet(self.table)
        self.older, self.newer, self.older_ns = self.newer, self.older, newer_ns
        return [_answer(nvml, row, size) for row, (_, size) in zip(self.rows, METRICS.values(), strict=True)]

    def _begin(self, gpu: Contact) -> Refusal:
        nvml = gpu.nvml
        asked = nvml.nvmlGpmQueryDeviceSupport(gpu.parent or gpu.handle)
        if not getattr(asked, "isSupportedDevice", asked):
            return _NOT_HERE
        if self.older is None:
            self.older, self.newer = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        _sample(gpu, self.older)
        self.older_ns = self.clock_ns()
        table = nvml.c_nvmlGpmMetricsGet_t()
        table.version, table.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(METRICS)
        self.rows = [table.metrics[k] for k in range(len(METRICS))]
        for row, (number, _) in zip(self.rows, METRICS.values(), strict=True):
            row.metricId = number
        self.table = table
        return _FIRST

    def free(self, nvml: Any) -> None:
        """Give the samples back.

        Raises whatever the binding raises.
        """
        samples = [self.older, self.newer]
        self.older = self.newer = self.table = None
        self.rows = []
        for sample in samples:
            if sample is not None:
                nvml.nvmlGpmSampleFree(sample)


def _answer(nvml: Any, row: Any, size: float) -> Answer:
    """One metric; each has a code of its own, also where the call succeeded."""
    return refusal_of(nvml.NVMLError(row.nvmlReturn)) if row.nvmlReturn else float(row.value) * size


def _sample(gpu: Contact, into: Any) -> None:
    if gpu.gpu_instance is not None:
        gpu.nvml.nvmlGpmMigSampleGet(gpu.parent, gpu.gpu_instance, into)
    else:
        gpu.nvml.nvmlGpmSampleGet(gpu.handle, into)


def question(monitor: Monitor) -> Question:
    """The question that this pair of samples answers."""
    return Question(tuple(METRICS), (monitor,), SELDOM_S, soon=True)
