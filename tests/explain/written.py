"""Traces written by hand: a job with four kernels a step, times in whole microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KERNELS = (
    ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_tn", 100),
    ("void gemm_of_somebody", 60),
    ("void at::native::vectorized_elementwise_kernel<4>", 40),
    ("void at::native::reduce_kernel<512, 1>", 20),
)
STEP_US, APART_US, LAUNCH_US = 1000, 200, 5


@dataclass
class JobTrace:
    """Steps of 1,000 µs with a launch and a kernel each 200 µs.

    `talk_us` adds a collective at the end of each, `host_works` a framework call that takes all of it.
    """

    n_steps: int
    device: int = 0
    optimizer_marks: bool = False
    first_late_us: int = 0
    talk_us: int = 0
    host_works: bool = False

    @property
    def events(self) -> list[dict[str, Any]]:
        """The records in the form of a trace."""
        made = []
        for step in range(self.n_steps):
            at = STEP_US * step + (self.first_late_us if step > 0 else 0)
            for k, (name, long) in enumerate(KERNELS):
                number = 1000 * self.device + 10 * step + k + 1
                made += self._launched(name, at + APART_US * k, long, number)
            if self.host_works:
                made.append(self._host("cpu_op", "aten::everything", at, STEP_US))
            if self.talk_us:
                made.append(self._on_gpu("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 800, self.talk_us, 20, 0))
            if self.optimizer_marks:
                made.append(self._host("user_annotation", "Optimizer.step#SGD.step", at + 890, 10))
        return made

    def _launched(self, name: str, at: int, long: int, number: int) -> list[dict[str, Any]]:
        call = self._host("cuda_runtime", "cudaLaunchKernel", at, LAUNCH_US) | {"args": {"correlation": number}}
        return [call, self._on_gpu(name, at + LAUNCH_US, long, 7, number)]

    def _on_gpu(self, name: str, at: int, long: int, stream: int, number: int) -> dict[str, Any]:
        args = {"device": self.device, "stream": stream} | ({"correlation": number} if number else {})
        return self._event("kernel", name, at, long, self.device, stream) | {"args": args}

    def _host(self, cat: str, name: str, at: int, long: int) -> dict[str, Any]:
        return self._event(cat, name, at, long, 100 + self.device, 1)

    @staticmethod
    def _event(cat: str, name: str, at: int, long: int, pid: int, tid: int) -> dict[str, Any]:
        return {"ph": "X", "cat": cat, "name": name, "ts": at, "dur": long, "pid": pid, "tid": tid}
