"""NVIDIA's GPUs: from a sampler made by hand, and from the real sampler with the fake driver under it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from gpututor.measure.nvml import Device as Gpu
from gpututor.measure.nvml import Reading, Series
from gpututor.measure.nvml.processes import GpuProcess
from gpututor.measure.nvml.processes import Processes as Answer
from gpututor.watch.nvidia import PROCESSES_EVERY_S, NvidiaGpus, Processes
from tests.measure.fake_nvml.driver import MISSING, FakeDriver, build, can_build
from tests.watch.made import Clock

S = 10**9
H100 = Gpu("GPU-a", "H100", 0, {"memory_total_bytes": 80e9, "power_limit_w": 700.0, "sm_clock_highest_hz": 1.98e9})


@dataclass
class FakeSampler:
    """A sampler whose values a test sets."""

    values: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    samples: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = (H100,)
    at_ns: int = 0
    reason: str | None = None
    stopped: bool = False

    def latest(self):
        return tuple(Reading(gpu, self.at_ns, self.values, self.reasons) for gpu in self.gpus)

    def series(self, name, device=0):
        entries = self.samples.get(name, [])
        return Series(name, "", str(device), tuple(t for t, _ in entries), tuple(v for _, v in entries))

    def stop(self):
        self.stopped = True


def of(sampler, processes=None):
    return NvidiaGpus(sampler, processes or Processes("no driver"))


def test_the_share_is_the_mean_of_what_was_sampled_since_the_last_look():
    sampler = FakeSampler(samples={"kernel_time_samples_share": [(1 * S, 0.2), (2 * S, 0.4)]}, at_ns=2 * S)
    gpus = of(sampler)
    first = gpus.read()[0]
    sampler.samples["kernel_time_samples_share"] += [(3 * S, 1.0), (4 * S, 0.5)]
    sampler.at_ns = 4 * S
    second = gpus.read()[0]

    assert first.kernel_time_share == pytest.approx(0.3)
    assert second.kernel_time_share == 0.75


def test_where_the_driver_keeps_no_samples_its_gauge_is_taken():
    sampler = FakeSampler(samples={"kernel_time_share": [(1 * S, 0.6)]}, at_ns=1 * S)

    assert of(sampler).read()[0].kernel_time_share == 0.6


def test_without_a_new_sample_the_newest_value_stands():
    sampler = FakeSampler(values={"kernel_time_share": 0.7, "kernel_time_samples_share": None}, at_ns=1 * S)

    assert of(sampler).read()[0].kernel_time_share == 0.7


def test_a_value_that_is_not_there_comes_with_the_samplers_reason():
    sampler = FakeSampler(
        values={"power_w": None}, reasons={"power_w": "Not Supported, code 3", "kernel_time_share": "x"}
    )
    (gpu,) = of(sampler).read()

    assert (gpu.power_w, gpu.reasons["power_w"]) == (None, "Not Supported, code 3")
    assert (gpu.kernel_time_share, gpu.reasons["kernel_time_share"]) == (None, "x")


def test_limits_come_from_what_never_changes():
    (gpu,) = of(FakeSampler(values={"memory_used_bytes": 4e9, "clock_reasons": 4.0})).read()

    assert (gpu.memory_used_bytes, gpu.memory_total_bytes) == (4_000_000_000, 80_000_000_000)
    assert (gpu.power_limit_w, gpu.sm_clock_max_hz) == (700.0, 1.98e9)
    assert [reason.name for reason in gpu.clock_reasons] == ["power limit"]


def test_a_gpu_is_numbered_as_cuda_does_and_else_by_its_place():
    gpus = (Gpu("GPU-a", "H100", 1), Gpu("GPU-b", "H100", 0))
    unsure = (Gpu("GPU-a", "H100"), Gpu("GPU-b", "T4"))

    assert [g.key for g in of(FakeSampler(gpus=gpus)).read()] == ["gpu1", "gpu0"]
    assert [g.key for g in of(FakeSampler(gpus=unsure)).read()] == ["gpu0", "gpu1"]


def test_without_a_gpu_the_samplers_reason_is_given():
    gpus = of(FakeSampler(gpus=(), reason="no NVIDIA driver is installed here"))

    assert gpus.read() == ()
    assert gpus.why_none == "no NVIDIA driver is installed here"


def test_with_a_gpu_there_is_no_reason():
    assert of(FakeSampler()).why_none is None


class Library:
    """Stands in for an opened library; only closing it is asked here."""

    closed = False

    def close(self):
        self.closed = True


def test_processes_are_asked_for_now_and_then():
    clock, asked = Clock(), []

    def ask(library, gpu):
        asked.append(gpu.uuid)
        return Answer((GpuProcess(42, 1 << 30, "python"),))

    gpus = of(FakeSampler(), Processes(Library(), clock_s=clock, ask=ask))
    seen = [gpus.read()[0].processes]
    clock.now_s += PROCESSES_EVERY_S / 2
    seen.append(gpus.read()[0].processes)
    assert asked == ["GPU-a"]
    clock.now_s += PROCESSES_EVERY_S
    seen.append(gpus.read()[0].processes)

    assert asked == ["GPU-a", "GPU-a"]
    assert [(p.pid, p.name, p.memory_bytes) for each in seen for p in each] == [(42, "python", 1 << 30)] * 3


def test_processes_that_the_driver_does_not_name_are_none_with_a_reason():
    (gpu,) = of(FakeSampler(), Processes(Library(), ask=lambda *_: Answer(None, "Not Supported, code 3"))).read()

    assert (gpu.processes, gpu.reasons["processes"]) == (None, "Not Supported, code 3")


def test_closing_lets_go_of_sampler_and_library():
    sampler, library = FakeSampler(), Library()
    of(sampler, Processes(library)).close()

    assert sampler.stopped
    assert library.closed


# --- with the fake driver ---


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> FakeDriver:
    if not can_build():
        pytest.skip(MISSING)
    return FakeDriver(build(tmp_path_factory.mktemp("driver")))


@pytest.fixture
def driver(built, monkeypatch) -> Iterator[FakeDriver]:
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    with built.in_place():
        yield built


def test_a_drivers_gpus_are_read_and_the_driver_is_given_back(driver):
    driver.says("count=2;name=NVIDIA H100;util=25;0.power_mw=250000;reasons=4;pids=4242")
    gpus = NvidiaGpus()
    first, second = gpus.read()
    gpus.close()

    assert (first.key, second.key, first.name) == ("gpu0", "gpu1", "NVIDIA H100")
    assert first.kernel_time_share == pytest.approx(0.25)
    assert first.power_w == 250.0
    assert [reason.name for reason in first.clock_reasons] == ["power limit"]
    assert [p.pid for p in first.processes] == [4242]
    assert driver.n_open == 0


def test_one_broken_gpu_hides_no_other(driver):
    driver.says("count=2;util=25;1.nvmlDeviceGetUtilizationRates=999;1.nvmlDeviceGetSamples=999")
    gpus = NvidiaGpus()
    first, second = gpus.read()
    gpus.close()

    assert first.kernel_time_share == pytest.approx(0.25)
    assert second.kernel_time_share is None
    assert "999" in second.reasons["kernel_time_share"]


def test_a_lost_gpu_is_said_to_be_lost_and_not_asked_again(driver):
    driver.says("count=1;lost=1")
    gpus = NvidiaGpus()
    found = gpus.read()
    gpus.close()

    assert not found or "lost" in found[0].reasons["kernel_time_share"]
    assert driver.n_bad_handles == 0


def test_without_permission_the_watch_goes_on(driver):
    driver.says("nvmlInitWithFlags=4")
    gpus = NvidiaGpus()

    assert gpus.read() == ()
    assert "may not open the GPU" in gpus.why_none
    gpus.close()
