"""A V100 to calibrate whose clock only moves when told, and what it is made to take."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpututor.calibration.bench import Bench
from gpututor.calibration.on_gpu import _product, base_forward_ns
from gpututor.cards import card
from gpututor.model.cost import price
from tests.measure.fake_gpu import FakeGpu

LAUNCH_US, TINY_US, WAKE_US = 5, 2, 12
V100 = card("V100-SXM2-16GB")


class SlowToWake(FakeGpu):
    """The host goes on some µs after the card is done."""

    def synchronize(self) -> None:
        super().synchronize()
        self.think(WAKE_US)


@dataclass
class Made:
    """How the fake behaves: `host_times` as in data/hosts.toml, products `product_times` as long as the model says."""

    host_times: float = 0.5
    product_times: float = 1.25
    copy_bytes_per_s: float = 12e9
    bandwidth_share: float = 0.8
    failing: dict[str, Exception] = field(default_factory=dict)

    def bench(self) -> Bench:
        """The fake as a bench; what `failing` names raises."""
        gpu = SlowToWake()

        def maker(name, make):
            def made(*args):
                if name in self.failing:
                    raise self.failing[name]
                return make(*args)

            return made

        def network(grad):
            return lambda: gpu.think(self.host_times * base_forward_ns(grad=grad) / 1e3)

        def product(number_format, side):
            long_us = self.product_times * price(_product(number_format, side), V100).duration_ns / 1e3
            return lambda: gpu.launch(long_us)

        def copy(n_bytes):
            return lambda: gpu.launch(2 * n_bytes / (self.bandwidth_share * V100.bandwidth_bytes_per_s) * 1e6, "copy")

        def copy_to_gpu(n_bytes, pinned):
            rate = self.copy_bytes_per_s if pinned else self.copy_bytes_per_s / 2
            return lambda: gpu.launch(n_bytes / rate * 1e6, "copy")

        return Bench(
            gpu.as_gpu(),
            ("fp32", "fp16"),
            maker("network", network),
            maker("tiny", lambda: lambda: gpu.launch(TINY_US, "fill")),
            maker("product", product),
            maker("copy", copy),
            maker("copy_to_gpu", copy_to_gpu),
        )
