"""Constants of the model that belong to no card and to no host, to be set otherwise for one pricing of a tape.

A card's rates and a host's costs need none of this: price the tape on a changed `Machine`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.model.costs.gemm import product_floor_s
from gpututor.model.costs.rnn import charged_apart_s, step_cost
from gpututor.model.costs.walk import floor_s as walk_floor_s
from gpututor.model.kernels import Conv, Gemm, RnnLayer, RnnStep
from gpututor.model.queue import KERNEL_GAP_NS, LAUNCH_LATENCY_NS
from gpututor.model.spec import KernelSpec
from gpututor.timeline import NS_PER_S


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The queue's delays, and how many times as long as in the model the fixed part of a kernel lasts."""

    launch_latency_ns: int = LAUNCH_LATENCY_NS
    kernel_gap_ns: int = KERNEL_GAP_NS
    floor_times: float = 1.0
    recurrent_times: float = 1.0  # of a step inside a cuDNN recurrent layer

    def kernel_ns(self, spec: KernelSpec, duration_ns: int) -> int:
        """How long a kernel of `duration_ns` lasts with another fixed part; 1 or more.

        Every rule adds its floor to what arithmetic and memory take, so the floor can be exchanged afterwards. A
        recurrent step with weights so large that memory alone decides is the exception: it has no floor to exchange.
        From Ampere on a step is an ordinary product, of which no more than the whole is taken for its floor.
        """
        times = self.recurrent_times if type(spec) in (RnnStep, RnnLayer) else self.floor_times
        if times == 1:
            return duration_ns
        floor_ns = min(floor_s(spec) * NS_PER_S, duration_ns)
        return max(1, duration_ns + round((times - 1) * floor_ns))


AS_IT_IS = WhatIf()


def floor_s(spec: KernelSpec) -> float:
    """Seconds of a kernel that depend neither on its arithmetic nor on its traffic.

    >>> from gpututor.model.kernels import Memset
    >>> round(floor_s(Memset("fill", 4)) * 1e9), "ns"
    (1700, 'ns')
    """
    if isinstance(spec, RnnStep):
        return step_cost(spec.number_format, spec.backward, spec.gates).fixed_s - charged_apart_s()
    depthwise = isinstance(spec, Conv) and spec.groups > 1 and spec.c_in == spec.groups
    return product_floor_s() if isinstance(spec, Gemm | Conv) and not depthwise else walk_floor_s()
