"""Readings through NVML: each on its own, None with a reason, never an exception."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpututor.measure.nvml import read

UUID = "GPU-7d0e2c5b"


def not_supported(*asked: object) -> None:
    raise RuntimeError("Not Supported")


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
            "nvmlInit": lambda: self.opened(1),
            "nvmlShutdown": lambda: self.opened(-1),
        }
        super().__init__(**answers, NVML_CLOCK_SM=1, NVML_TEMPERATURE_GPU=0, n_open=0, asked_for="")
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
    assert readings.reasons == {"power_w": "RuntimeError: Not Supported"}
    assert readings.kernel_time_share == 0.25


@pytest.mark.parametrize("lacking", ["nvmlInit", "nvmlDeviceGetHandleByUUID"])
def test_without_driver_or_card_everything_is_none_with_a_reason(lacking):
    readings = read(UUID, FakeNvml(lacking))

    assert readings.kernel_time_share is None
    assert set(readings.reasons) == {"driver", "kernel_time_share", "power_w", "sm_clock_hz", "temperature_c"}


def test_the_card_is_found_by_uuid_as_torch_writes_it():
    nvml = FakeNvml()

    read("7d0e2c5b", nvml)

    assert nvml.asked_for == UUID


def test_the_library_is_closed_again():
    nvml = FakeNvml("nvmlDeviceGetPowerUsage")

    read(UUID, nvml)

    assert nvml.n_open == 0
