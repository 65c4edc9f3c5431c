"""What the driver and torch are asked, with stand-ins that lack functions, fail and lose cards."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from gpututor.doctor import driver_probe
from gpututor.doctor.facts import Driver, Torch
from gpututor.doctor.torch_probe import RUN, ask_torch


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


@pytest.mark.gpu
def test_a_first_kernel_runs_on_the_gpu():
    told: dict[str, object] = {}
    ask_torch(told.update, lambda: RUN)

    assert all(gpu.error is None and gpu.kernel_s > 0 for gpu in Torch.from_fields(told).gpus)
