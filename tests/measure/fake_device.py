"""A device with a queue for tests: host and GPU clocks in whole ms that only move when told."""

from __future__ import annotations

from gpututor.measure.devices import Device
from gpututor.timeline import Origin

MS = 1_000_000


class FakeDevice:
    """`think` is the host's own time; `launch` costs the host `host_ms` and queues `gpu_ms` of work."""

    def __init__(self, n_reached: int | None = None) -> None:
        self.host_ms = self.gpu_ms = 0
        self.n_syncs = self.n_marks = 0
        self.peak_bytes = 3 * 2**30
        self.fails: Exception | None = None

    def think(self, long_ms: int) -> None:
        self.host_ms += long_ms

    def launch(self, gpu_ms: int, host_ms: int = 0) -> None:
        self.host_ms += host_ms
        self.gpu_ms = max(self.gpu_ms, self.host_ms) + gpu_ms

    def synchronize(self) -> None:
        if self.fails is not None:
            raise self.fails
        self.n_syncs += 1
        self.host_ms = max(self.host_ms, self.gpu_ms)

    def mark(self) -> list[int]:
        self.n_marks += 1
        return [max(self.gpu_ms, self.host_ms) * MS]  # a list, so that each mark is an object of its own

    def as_device(self, **other: object) -> Device:
        fields: dict[str, object] = {
            "kind": "cuda",
            "name": "Tesla V100-SXM2-16GB",
            "mark": self.mark,
            "between_ns": lambda a, b: b[0] - a[0],
            "synchronize": self.synchronize,
            "reached": lambda mark: mark[0] <= self.host_ms * MS,
            "host_ns": lambda: self.host_ms * MS,
            "memory_peak_bytes": lambda: (self.peak_bytes, None),
            "card": "V100-SXM2-16GB",
            "host": "a host",
            "n_sms": 80,
            "no_sampler": "none in this test",
            "origin": Origin.MEASURED,
            "versions": (("torch", "2.13.0"),),
        }
        return Device(**{**fields, **other})  # type: ignore[arg-type]
