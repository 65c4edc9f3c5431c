"""This machine's GPU and the host beside it: launches, waits, copies and matrix products, timed one after the other.

Each measure stands alone: where one fails its figure is missing, with the reason, and the others go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from gpututor.calibration.bench import MIB, Bench, Call
from gpututor.calibration.network import N_BLOCKS
from gpututor.cards import Card, Host, find_card, hosts
from gpututor.measure.cuda import record_cuda
from gpututor.model.cost import price
from gpututor.model.host import op_host
from gpututor.model.kernels import Gemm
from gpututor.model.queue import LAUNCH_LATENCY_NS
from gpututor.model.spec import HostKind
from gpututor.own_machine import OwnCard, OwnHost, base_costs
from gpututor.progress import Stopped
from gpututor.text import percent
from gpututor.timeline import Activity, Timeline

N_CALLS, N_TINY, N_STEPS = 40, 200, 3
PRODUCT_SIDES = (4096, 8192)
PRODUCT_NS = 200_000_000  # each product is repeated for so long: a card needs some time to reach its steady clock
BANDWIDTH_BYTES, COPY_BYTES = 512 * MIB, 256 * MIB
ITEM_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
Telling = Callable[[str, int, int], None]


@dataclass(slots=True)
class Found:
    """What was measured so far: figures by name, and for each missing one the reason."""

    figures: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, measure: Callable[[], float]) -> None:
        """Measure one figure; what torch raises becomes the reason why it is missing."""
        try:
            value = measure()
        except Stopped:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a driver says, the other figures can still be had
            self.reasons[name] = _sentence(error)
            return
        if math.isfinite(value) and value >= 0:
            self.figures[name] = value
        else:
            self.reasons[name] = f"it came out as {value:g}, which can't be"


def measured(bench: Bench, tell: Telling) -> Found:
    """Every figure that this GPU gives: times in nanoseconds (`_ns`), rates (`_per_s`), and shares of our table's."""
    found = Found()
    card = find_card(bench.gpu.name)
    measures: list[tuple[str, Callable[[], float]]] = [
        ("no_grad_ns", lambda: host_ns(bench, bench.network(False))),
        ("grad_ns", lambda: host_ns(bench, bench.network(True))),
        ("tiny_ns", lambda: host_ns(bench, bench.tiny())),
        ("sync_wall_ns", lambda: sync_wall_ns(bench)),
        ("bandwidth_bytes_per_s", lambda: 2 * BANDWIDTH_BYTES * 1e9 / repeated_ns(bench, bench.copy(BANDWIDTH_BYTES))),
        *((f"{kind}_bytes_per_s", _copy_rate(bench, kind)) for kind in ("pinned", "pageable")),
        *((f"sustained.{name}", _share_of(bench, card, name)) for name in bench.formats),
    ]
    for k, (name, measure) in enumerate(measures):
        found.take(name, measure)
        tell(f"on the {bench.gpu.name}", k + 1, len(measures) + 1)
    _take_recorded(found, bench)
    tell(f"on the {bench.gpu.name}", len(measures) + 1, len(measures) + 1)
    return found


# --- the host -------------------------------------------------------------------------------------------------------


def host_ns(bench: Bench, call: Call) -> float:
    """The middle time until a call comes back, its queue empty before, so that it never waits for the card."""
    call()  # the first call loads its kernels
    times_ns = []
    for _ in range(N_CALLS):
        bench.gpu.synchronize()
        began_ns = bench.gpu.clock_ns()
        call()
        times_ns.append(bench.gpu.clock_ns() - began_ns)
    bench.gpu.synchronize()
    return median(times_ns)


def sync_wall_ns(bench: Bench) -> float:
    """The middle time of one tiny launch and the wait for it."""
    tiny, gpu = bench.tiny(), bench.gpu
    times_ns = []
    for _ in range(N_CALLS):
        gpu.synchronize()
        began_ns = gpu.clock_ns()
        tiny()
        gpu.synchronize()
        times_ns.append(gpu.clock_ns() - began_ns)
    return median(times_ns)


def base_forward_ns(*, grad: bool) -> int:
    """What the amounts of data/hosts.toml say to one inference of the network, in nanoseconds."""
    usual = next(iter(hosts().values()))
    host = Host("base", "", 1, base_costs(), usual.pinned_bytes_per_s, usual.pageable_bytes_per_s, 0.0, {})
    kinds = [HostKind.CUDNN, HostKind.NORM, HostKind.LIGHT] * 3 + [HostKind.LIGHT]  # the last adds the block's input
    kinds = kinds * N_BLOCKS + [HostKind.VIEW, HostKind.VIEW, HostKind.GEMM]  # flatten, t and addmm
    costs = [(kind, op_host(kind, "forward" if grad else "no_grad", 1, host)) for kind in kinds]
    return sum(c.python_ns + c.dispatch_ns + (c.launch_ns if kind is not HostKind.VIEW else 0) for kind, c in costs)


def own_host(found: Found, cpu: str, n_cpus: int) -> OwnHost | None:
    """The host that these figures show; None where neither inference could be timed.

    Its `times` is the geometric mean of both inferences' ratios to the table's amounts, its error the largest
    distance of the ratios from it, that of the driver's launch call included where a profiler saw it.
    """
    ratios = [
        found.figures[name] / base_forward_ns(grad=grad)
        for name, grad in (("no_grad_ns", False), ("grad_ns", True))
        if name in found.figures
    ]
    if not ratios:
        return None
    times = math.exp(sum(map(math.log, ratios)) / len(ratios))
    if "launch_ns" in found.figures:
        ratios.append(found.figures["launch_ns"] / (1e3 * base_costs()["launch"]))
    error_share = math.exp(max(abs(math.log(ratio / times)) for ratio in ratios)) - 1
    how = f"inferences of a small network on the GPU, and launches; these differ by up to {percent(error_share)}"
    pinned, pageable = (found.figures.get(f"{kind}_bytes_per_s") for kind in ("pinned", "pageable"))
    return OwnHost(cpu, n_cpus, times, error_share, how, pinned, pageable, _sync_us(found))


def _sync_us(found: Found) -> float | None:
    """From the card being done to the host going on: what is left of a launch with its wait, in microseconds."""
    needed = ("sync_wall_ns", "tiny_ns", "kernel_ns")
    missing = [name for name in needed if name not in found.figures]
    if missing:
        found.reasons["sync_us"] = f"{', '.join(missing)} is missing, which has to be taken off"
        return None
    wall_ns, tiny_ns, kernel_ns = (found.figures[name] for name in needed)
    return max(0.0, wall_ns - tiny_ns - LAUNCH_LATENCY_NS - kernel_ns) / 1e3


def _take_recorded(found: Found, bench: Bench) -> None:
    """Launch calls, kernels and the gaps between them, from a profile of tiny launches behind a long product."""
    timelines: list[Timeline] = []

    def first() -> float:
        product, tiny = bench.product("fp32", PRODUCT_SIDES[0]), bench.tiny()

        def step(k: int) -> None:
            product()
            for _ in range(N_TINY):
                tiny()

        timelines.append(record_cuda(step, n_steps=N_STEPS, warmup=1, gpu=bench.gpu).timeline)
        return median(launches_ns(timelines[0]))

    found.take("launch_ns", first)
    for name, values in (("kernel_ns", kernels_ns), ("kernel_gap_ns", gaps_ns)):
        if timelines:
            found.take(name, lambda values=values: median(values(timelines[0])))  # type: ignore[misc]
        else:
            found.reasons[name] = found.reasons["launch_ns"]


def launches_ns(timeline: Timeline) -> list[int]:
    """Length of each launch call."""
    return [span.duration_ns for span in timeline.on(Activity.LAUNCH)]


def kernels_ns(timeline: Timeline) -> list[int]:
    """Length of each kernel."""
    return [span.duration_ns for span in timeline.on(Activity.KERNEL)]


def gaps_ns(timeline: Timeline) -> list[int]:
    """From the end of each kernel to the next one's start, where that was launched before the end."""
    begun = {span.launch: span.end_ns for span in timeline.on(Activity.LAUNCH)}
    kernels = sorted(timeline.on(Activity.KERNEL), key=lambda span: span.start_ns)
    return [
        after.start_ns - now.end_ns
        for now, after in pairwise(kernels)
        if begun.get(after.launch, now.end_ns) < now.end_ns <= after.start_ns
    ]


# --- the card -------------------------------------------------------------------------------------------------------


def repeated_ns(bench: Bench, call: Call, least_ns: int = PRODUCT_NS) -> float:
    """Time of one call on a card that has nothing else to do, over as many calls as take `least_ns`."""
    gpu = bench.gpu
    one_ns = [_timed_ns(bench, call, 1) for _ in range(2)][-1]  # the first also loads the kernel
    n = max(2, math.ceil(least_ns / max(1, one_ns)))
    gpu.synchronize()
    return _timed_ns(bench, call, n) / n


def _timed_ns(bench: Bench, call: Call, n: int) -> int:
    bench.gpu.synchronize()
    began_ns = bench.gpu.clock_ns()
    for _ in range(n):
        call()
    bench.gpu.synchronize()
    return bench.gpu.clock_ns() - began_ns


def _copy_rate(bench: Bench, kind: str) -> Callable[[], float]:
    def measure() -> float:
        call = bench.copy_to_gpu(COPY_BYTES, kind == "pinned")
        return COPY_BYTES * 1e9 / repeated_ns(bench, call)

    return measure


def _share_of(bench: Bench, card: Card | None, number_format: str) -> Callable[[], float]:
    """The share of the peak that products hold: our table's, times what the model expects over what was measured."""

    def measure() -> float:
        if card is None:
            raise LookupError(f"{bench.gpu.name} is not in our table of cards")
        usual = card.sustained[number_format]
        shares = []
        for side in PRODUCT_SIDES:
            call = bench.product(number_format, side)
            expected_ns = price(_product(number_format, side), card).duration_ns
            shares.append(usual * expected_ns / repeated_ns(bench, call))
        return min(1.0, median(shares))

    return measure


def _product(number_format: str, side: int) -> Gemm:
    moved_bytes = 3 * side * side * ITEM_BYTES[number_format]
    tf32 = number_format == "tf32"
    return Gemm("product", side, side, side, moved_bytes, "fp32" if tf32 else number_format, tf32=tf32)


def own_card(found: Found, bench: Bench) -> OwnCard:
    """The card that these figures show."""
    shares = {name.partition(".")[2]: value for name, value in found.figures.items() if name.startswith("sustained.")}
    card, rate = find_card(bench.gpu.name), found.figures.get("bandwidth_bytes_per_s")
    share = None if card is None or rate is None else min(1.0, rate / card.bandwidth_bytes_per_s)
    if share is None:
        found.reasons.setdefault("bandwidth_share", f"{bench.gpu.name} is not in our table of cards")
    return OwnCard(bench.gpu.name, bench.gpu.readings().driver, shares, share)


def noted(found: Found) -> dict[str, float]:
    """Figures that the model doesn't take over, in microseconds."""
    names: Iterable[str] = ("launch_ns", "tiny_ns", "kernel_ns", "kernel_gap_ns")
    return {f"{name[:-3]}_us": found.figures[name] / 1e3 for name in names if name in found.figures}


def _sentence(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
