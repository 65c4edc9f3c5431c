"""What the driver and torch are asked, with stand-ins that lack functions, fail and lose cards."""

from __future__ import annotations

import json
import sys
import warnings
from types import SimpleNamespace

import pytest

from gpututor.doctor import Probe, driver_probe
from gpututor.doctor.child import Child
from gpututor.doctor.facts import Driver, Switches, Torch
from gpututor.doctor.torch_probe import RUN, ask_torch
from tests.measure.fake_nvml.driver import MISSING, FakeDriver, build, can_build


class NvmlError(Exception):
    """As the binding's own: it carries NVML's code."""

    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


def refusing(value):
    def refuse(*_):
        raise NvmlError(value)

    return refuse


ANSWERS = {
    "nvmlInit": lambda: None,
    "nvmlShutdown": lambda: None,
    "nvmlSystemGetDriverVersion": lambda: b"580.65.06",
    "nvmlSystemGetCudaDriverVersion": lambda: 13000,
    "nvmlDeviceGetCount": lambda: 2,
    "nvmlDeviceGetHandleByIndex": lambda k: k,
    "nvmlDeviceGetName": lambda gpu: b"Tesla T4",
    "nvmlDeviceGetUUID": lambda gpu: f"GPU-{gpu}",
    "nvmlDeviceGetCudaComputeCapability": lambda gpu: (7, 5),
    "nvmlDeviceGetMemoryInfo": lambda gpu, version=1: SimpleNamespace(total=1000, used=300 if version == 1 else 50),
    "nvmlMemory_v2": 2,
    "nvmlDeviceGetPowerUsage": lambda gpu: 61_250,
    "nvmlDeviceGetCurrentClocksEventReasons": lambda gpu: 4,
    "nvmlDeviceGetMigMode": lambda gpu: (1, 1),
    "nvmlDeviceGetMaxMigDeviceCount": lambda gpu: 7,
    "nvmlDeviceGetMigDeviceHandleByIndex": lambda gpu, k: k if k < 2 else refusing(6)(),
    "nvmlDeviceGetComputeRunningProcesses": lambda gpu: [SimpleNamespace(pid=2**31 + 7, usedGpuMemory=None)],
    "nvmlDeviceGetGraphicsRunningProcesses": refusing(3),
}


def asked(**changed):
    """The driver record that comes out of a stand-in with some answers changed, by way of JSON as from the child."""
    told: dict[str, object] = {}
    driver_probe.ask_driver(told.update, SimpleNamespace(**{**ANSWERS, **changed}), sleep=lambda _: None)
    return Driver.from_fields(json.loads(json.dumps(told)))


def test_values_come_in_our_units():
    driver = asked()

    assert (driver.version, driver.cuda, len(driver.gpus)) == ("580.65.06", "13.0", 2)
    assert driver.gpus[0].power_w == 61.25
    assert driver.gpus[0].capability == "7.5"


def test_the_drivers_own_memory_is_not_counted_as_used():
    assert asked().gpus[0].memory_used_bytes == 50


def test_an_old_driver_counts_its_own_memory_as_used():
    def first_version_only(gpu, version=1):
        return SimpleNamespace(total=1000, used=300) if version == 1 else refusing(25)()

    assert asked(nvmlDeviceGetMemoryInfo=first_version_only).gpus[0].memory_used_bytes == 300


def test_a_function_that_is_missing_leaves_none_and_a_reason():
    gpu = asked().gpus[0]

    assert gpu.temperature_c is None
    assert "AttributeError" in gpu.reasons["temperature_c"]


def test_a_function_that_fails_leaves_the_others():
    gpu = asked(nvmlDeviceGetPowerUsage=refusing(3)).gpus[0]

    assert gpu.power_w is None
    assert gpu.reasons["power_w"] == "NvmlError: code 3"
    assert gpu.memory_bytes == 1000


def test_reasons_of_the_clocks_are_read_several_times():
    assert asked().gpus[0].clock_reasons == (4,) * driver_probe.N_CLOCK_READINGS


def test_reasons_of_the_clocks_have_an_older_name():
    gpu = asked(
        nvmlDeviceGetCurrentClocksEventReasons=refusing(13), nvmlDeviceGetCurrentClocksThrottleReasons=lambda gpu: 8
    ).gpus[0]

    assert set(gpu.clock_reasons) == {8}


def test_slices_are_counted_by_the_handles_that_there_are():
    assert asked().gpus[0].n_mig_slices == 2


def test_a_process_of_another_world_has_no_name():
    (process,) = asked().gpus[0].processes

    assert (process.pid, process.name, process.memory_bytes) == (2**31 + 7, None, None)


def test_a_lost_card_leaves_the_other():
    driver = asked(nvmlDeviceGetName=lambda gpu: "Tesla T4" if gpu == 0 else refusing(15)())

    assert [gpu.index for gpu in driver.gpus] == [0]
    assert [(one.index, one.code) for one in driver.unreachable] == [(1, 15)]


def test_a_driver_that_does_not_start_gives_its_code():
    driver = asked(nvmlInit=refusing(18))

    assert (driver.code, driver.error, driver.gpus) == (18, "NvmlError: code 18", ())


def test_a_count_that_fails_is_an_error_of_the_driver():
    assert asked(nvmlDeviceGetCount=refusing(999)).code == 999


def test_each_card_is_told_before_the_next_is_asked():
    stages: list[int] = []
    driver_probe.ask_driver(
        lambda fields: stages.append(len(fields.get("gpus", ()))), SimpleNamespace(**ANSWERS), sleep=lambda _: None
    )

    assert stages[0] == 0  # versions come first


@pytest.mark.skipif(not can_build(), reason=MISSING)
def test_the_real_binding_asks_a_fake_driver_in_a_child(tmp_path, monkeypatch):
    """Through the binding's own structures, with one card lost and one function that fails."""
    for name, value in FakeDriver(build(tmp_path)).environ("1.lost=1;0.nvmlDeviceGetPowerUsage=3;reasons=4").items():
        monkeypatch.setenv(name, value)
    with Child(Probe.DRIVER) as child:
        fields, why = child.answer(30)
    driver = Driver.from_fields(fields)

    assert why is None
    assert [one.code for one in driver.unreachable] == [15]
    assert driver.gpus[0].clock_reasons == (4,) * driver_probe.N_CLOCK_READINGS
    assert driver.gpus[0].pcie_width == driver.gpus[0].pcie_width_max == 16
    assert "NotSupported" in driver.gpus[0].reasons["power_w"]


# --- torch ----------------------------------------------------------------------------------------------------------


def test_the_torch_that_is_installed_answers():
    import torch

    stages: list[dict[str, object]] = []
    order: list[str] = []
    ask_torch(lambda fields: (order.append("told"), stages.append(fields)), lambda: order.append("may") or RUN)
    told = Torch.from_fields(json.loads(json.dumps({k: v for stage in stages for k, v in stage.items()})))

    assert told.version == torch.__version__
    assert told.available is torch.cuda.is_available()
    assert told.switches is not None
    assert order[:3] == ["told", "may", "told"]  # the GPU is touched when it is allowed


def torch_with(monkeypatch, *, n=2, ones=None, warned=None, available=True):
    """What a made-up torch for CUDA tells; `ones` makes the tensor of the first kernel."""

    class Eight:
        def sum(self):
            return 8.0

    def is_available():
        if warned:
            warnings.warn(warned, stacklevel=1)
        return available

    def no_init():
        raise RuntimeError("Found no NVIDIA driver on your system")

    card = SimpleNamespace(name="Tesla T4", major=7, minor=5, uuid="1-2", total_memory=16)
    stand_in = SimpleNamespace(
        __version__="2.13.0+cu130",
        __file__="/somewhere/torch/__init__.py",
        version=SimpleNamespace(cuda="13.0", hip=None),
        backends=SimpleNamespace(
            cudnn=SimpleNamespace(version=lambda: 91002, deterministic=False, benchmark=True, enabled=True)
        ),
        get_num_threads=lambda: 4,
        is_anomaly_enabled=lambda: True,
        are_deterministic_algorithms_enabled=lambda: False,
        ones=ones or (lambda size, device: Eight()),
        cuda=SimpleNamespace(
            is_available=is_available,
            init=no_init,
            device_count=lambda: n,
            get_device_properties=lambda k: card,
            get_arch_list=lambda: ["sm_75"],
        ),
    )
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    told: dict[str, object] = {}
    ask_torch(told.update, lambda: RUN)
    return Torch.from_fields(json.loads(json.dumps(told)))


def test_each_card_gets_a_first_kernel(monkeypatch):
    told = torch_with(monkeypatch)

    assert [(gpu.capability, gpu.kernel_s is not None, gpu.error) for gpu in told.gpus] == [("7.5", True, None)] * 2
    assert told.switches == Switches(anomaly=True, cudnn_benchmark=True)


def test_a_card_that_refuses_leaves_the_other(monkeypatch):
    class Eight:
        def sum(self):
            return 8.0

    def ones(size, device):
        if device == "cuda:0":
            raise RuntimeError("CUDA error: no kernel image is available\nCompile with TORCH_USE_CUDA_DSA")
        return Eight()

    first, second = torch_with(monkeypatch, ones=ones).gpus

    assert first.error == "CUDA error: no kernel image is available"
    assert second.error is None


def test_a_wrong_sum_is_an_error(monkeypatch):
    class Seven:
        def sum(self):
            return 7.0

    told = torch_with(monkeypatch, n=1, ones=lambda size, device: Seven())

    assert "not 8" in told.gpus[0].error


def test_torchs_warning_says_why_there_is_no_gpu(monkeypatch):
    assert torch_with(monkeypatch, available=False, warned="driver too old").why_not == "driver too old"


def test_without_a_warning_torchs_error_says_why(monkeypatch):
    assert "no NVIDIA driver" in torch_with(monkeypatch, available=False).why_not


@pytest.mark.gpu
def test_a_first_kernel_runs_on_the_gpu():
    told: dict[str, object] = {}
    ask_torch(told.update, lambda: RUN)

    assert all(gpu.error is None and gpu.kernel_s > 0 for gpu in Torch.from_fields(told).gpus)
