"""A GPU and its profiler for tests: a clock that only moves when told, and a trace of what was launched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from gpututor.measure.cuda import Gpu
from gpututor.measure.nvml import Readings

EARLIER_US = 1_000_000  # the profiler's clock doesn't begin at 0


class FakeGpu:
    """Host and stream clocks in whole µs; `launch` costs the host 5 µs, and the GPU as long as asked."""

    def __init__(self, watching_costs_us: int = 0) -> None:
        self.host_us = self.stream_us = EARLIER_US
        self.events: list[dict[str, object]] = []
        self.watching = False
        self.n_launches = 0
        self.watching_costs_us = watching_costs_us
        self.mark_us = 0
        self.n_steps = 0

    def launch(self, gpu_us: int, name: str = "gemm") -> None:
        self.n_launches += 1
        self._call("cudaLaunchKernel", 5, correlation=self.n_launches)
        start = max(self.host_us, self.stream_us)
        self.stream_us = start + gpu_us
        self._event("kernel", name, start, gpu_us, 0, 7, device=0, stream=7, correlation=self.n_launches)

    def think(self, host_us: int) -> None:
        self.host_us += host_us

    def synchronize(self) -> None:
        self._call("cudaDeviceSynchronize", max(1, self.stream_us - self.host_us))

    def _call(self, name: str, long_us: int, **args: object) -> None:
        self._event("cuda_runtime", name, self.host_us, long_us, 1, 1, **args)
        self.host_us += long_us + (self.watching_costs_us if self.watching else 0)

    def _event(self, cat: str, name: str, ts: int, dur: int, pid: int, tid: int, **args: object) -> None:
        if self.watching:
            event = {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}
            self.events.append(event)

    # --- the profiler ---

    def step(self) -> None:
        if self.watching:
            self._event(
                "user_annotation", f"ProfilerStep#{self.n_steps}", self.mark_us, self.host_us - self.mark_us, 1, 1
            )
        self.n_steps += 1
        self.watching = self.n_steps <= self.n_kept
        self.mark_us = self.host_us

    def export_chrome_trace(self, path: str) -> None:
        device = {"id": 0, "name": "Tesla V100-SXM2-16GB", "numSms": 80}
        Path(path).write_text(json.dumps({"deviceProperties": [device], "traceEvents": self.events}))

    @contextmanager
    def profiler(self, n_kept: int) -> Iterator[FakeGpu]:
        self.n_kept = n_kept
        yield self
        if self.watching:
            self._event(
                "user_annotation", f"ProfilerStep#{self.n_steps}", self.mark_us, self.host_us - self.mark_us, 1, 1
            )
            self.watching = False

    def as_gpu(self, readings: Readings | None = None) -> Gpu:
        return Gpu(
            "Tesla V100-SXM2-16GB",
            self.synchronize,
            self.profiler,
            lambda name: nullcontext(),
            lambda: readings or Readings(kernel_time_share=0.25),
            (("torch", "2.13.0"),),
            lambda: 1000 * self.host_us,
        )
