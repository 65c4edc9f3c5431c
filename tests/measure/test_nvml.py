"""Readings through NVML: each on its own, None with a reason, never an exception."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpututor.measure.nvml import find_gpus, read

UUID = "GPU-7d0e2c5b"


class Refused(Exception):
    """As the binding raises it."""

    value = 3


def not_supported(*asked: object) -> None:
    raise Refused("Not Supported")


class FakeNvml(SimpleNamespace):
    """NVML on a machine with one GPU that lacks some functions."""

    def __init__(self, *lacking: str) -> None:
        answers = {
            "nvmlSystemGetDriverVersion": lambda: b"550.54.15",
            "nvmlDeviceGetUtilizationRates": lambda gpu: SimpleNamespace(gpu=25, memory=3),
            "nvmlDeviceGetPowerUsage": lambda gpu: 61_250,
            "nvmlDeviceGetClockInfo": lambda gpu, clock: 1530,
            "nvmlDeviceGetTemperature": lambda gpu, sensor: 41,
            "nvmlDeviceGetHandleByUUID": self.find,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda k: k,
            "nvmlDeviceGetName": lambda gpu: (b"Tesla V100-SXM2-16GB", "Tesla T4")[gpu],
            "nvmlInit": lambda: self.opened(1),
            "nvmlShutdown": lambda: self.opened(-1),
        }
        super().__init__(**answers, NVMLError=Refused, n_open=0, asked_for="")
        for name in lacking:
            setattr(self, name, not_supported)

    def find(self, uuid: str) -> str:
        self.asked_for = uuid
        return uuid

    def opened(self, n: int) -> None:
        self.n_open += n


def test_readings_are_in_the_units_of_their_names():
    readings = read(UUID, FakeNvml())

    assert (readings.driver, readings.kernel_time_share, readings.power_w) == ("550.54.15", 0.25, 61.25)
    assert (readings.sm_clock_hz, readings.temperature_c) == (1.53e9, 41.0)


def test_one_reading_that_a_card_lacks_leaves_the_others():
    readings = read(UUID, FakeNvml("nvmlDeviceGetPowerUsage"))

    assert readings.power_w is None
    assert readings.reasons == {"power_w": "Not Supported, code 3"}
    assert readings.kernel_time_share == 0.25


def test_without_a_driver_everything_is_none_with_a_reason():
    readings = read(UUID, FakeNvml("nvmlInit"))

    assert readings.kernel_time_share is None
    assert set(readings.reasons) == {"driver", "kernel_time_share", "power_w", "sm_clock_hz", "temperature_c"}


def test_without_the_card_the_driver_is_still_named():
    readings = read(UUID, FakeNvml("nvmlDeviceGetHandleByUUID"))

    assert readings.driver == "550.54.15"
    assert set(readings.reasons) == {"kernel_time_share", "power_w", "sm_clock_hz", "temperature_c"}


def test_a_value_that_no_card_can_have_is_none():
    nvml = FakeNvml()
    nvml.nvmlDeviceGetPowerUsage = lambda gpu: 0xFFFFFFFF

    assert read(UUID, nvml).power_w is None


def test_a_gpu_that_cannot_be_opened_leaves_the_others():
    nvml = FakeNvml()
    nvml.nvmlDeviceGetHandleByIndex = lambda k: k or not_supported()

    assert find_gpus(nvml).names == ("Tesla T4",)


def test_the_card_is_found_by_uuid_as_torch_writes_it():
    nvml = FakeNvml()

    read("7d0e2c5b", nvml)

    assert nvml.asked_for == UUID


def test_the_library_is_closed_again():
    nvml = FakeNvml("nvmlDeviceGetPowerUsage")

    read(UUID, nvml)

    assert nvml.n_open == 0


def test_every_gpu_is_named_in_the_drivers_order():
    found = find_gpus(FakeNvml())

    assert found.names == ("Tesla V100-SXM2-16GB", "Tesla T4")
    assert found.reason is None


@pytest.mark.parametrize(
    ("lacking", "said"),
    [("nvmlInit", "does not answer"), ("nvmlDeviceGetName", "does not name"), ("nvmlDeviceGetCount", "does not name")],
)
def test_without_names_there_is_a_reason(lacking, said):
    found = find_gpus(FakeNvml(lacking))

    assert found.names == ()
    assert said in found.reason


def test_a_driver_without_gpus_is_told_apart_from_none():
    nvml = FakeNvml()
    nvml.nvmlDeviceGetCount = lambda: 0

    assert find_gpus(nvml).reason == "the NVIDIA driver is here, and shows no GPU"


@pytest.mark.parametrize("lacking", ["", "nvmlDeviceGetName"])
def test_asking_for_names_leaves_nvml_closed(lacking):
    nvml = FakeNvml(lacking) if lacking else FakeNvml()
    find_gpus(nvml)

    assert nvml.n_open == 0
