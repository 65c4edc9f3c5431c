"""The sampler's rounds without its thread: a test says what time it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpututor.measure.nvml.probing import Probe, Standing
from gpututor.measure.nvml.rounds import Rounds

INTERVAL_NS = 200_000_000


class ByHand(Rounds):
    """Rounds at times that are given in seconds; of GPU 0 unless another is named."""

    def at(self, *times_s: float) -> ByHand:
        for time_s in times_s:
            now_ns = int(time_s * 1e9)
            self.round(now_ns, time.time_ns() - now_ns)
        return self

    def every(self, until_s: float) -> ByHand:
        return self.at(*(k / 5 for k in range(int(until_s * 5) + 1)))

    def standing(self, metric: str, gpu: int = 0) -> Standing:
        return self.gpus[gpu].standings[metric]

    def probe(self, metric: str, gpu: int = 0) -> Probe:
        return next(probe for probe in self.gpus[gpu].probes if metric in probe.question.metrics)

    def value(self, metric: str, gpu: int = 0) -> float | None:
        return self.standing(metric, gpu).latest

    def why(self, metric: str, gpu: int = 0) -> str:
        return self.gpus[gpu].why(metric)


@contextmanager
def by_hand() -> Iterator[ByHand]:
    rounds = ByHand(INTERVAL_NS, None)
    rounds.open()
    try:
        yield rounds
    finally:
        rounds.close()
