"""CUDA's numbers and NVML's GPUs: found by UUID, by the rules of CUDA_VISIBLE_DEVICES, and not guessed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gpututor.measure.nvml import Sampler
from gpututor.measure.nvml.devices import find_devices
from gpututor.measure.nvml.library import open_library
from gpututor.measure.nvml.visible import torch_order, visible
from tests.measure.fake_nvml.driver import uuid

A, B, C = "GPU-aa11", "GPU-ab22", "GPU-cc33"
ALIKE = ((A, "H100"), (B, "H100"), (C, "H100"))
DIFFERENT = ((A, "T4"), (B, "H100"), (C, "H100"))


@pytest.mark.parametrize(
    ("listed", "seen"),
    [
        pytest.param("0,1", (A, B), id="whole numbers"),
        pytest.param("2,0", (C, A), id="in the order of the list"),
        pytest.param(" 1 , 2", (B, C), id="with spaces"),
        pytest.param("1abc", (B,), id="digits before letters count"),
        pytest.param("0,7,1", (A,), id="up to the first that is none"),
        pytest.param("0,-1,1", (A,), id="minus one ends the list"),
        pytest.param("-1", (), id="minus one alone hides all"),
        pytest.param("", (), id="empty hides all"),
        pytest.param("NoDevFiles", (), id="a word hides all"),
        pytest.param("0,0", (), id="twice the same hides all"),
        pytest.param("GPU-cc33,GPU-aa11", (C, A), id="UUIDs"),
        pytest.param("GPU-c", (C,), id="the beginning of a UUID"),
        pytest.param("GPU-a", (), id="a beginning of two"),
        pytest.param("GPU-c,GPU-a,GPU-ab", (C,), id="up to the first that fits two"),
        pytest.param("MIG-1,MIG-2", ("MIG-1",), id="one MIG instance"),
        pytest.param("MIG-GPU-aa11/1/0", ("MIG-GPU-aa11/1/0",), id="a MIG instance in the older form"),
    ],
)
def test_cuda_sees(listed, seen):
    assert visible(ALIKE, {"CUDA_VISIBLE_DEVICES": listed}).uuids == seen


def test_without_a_list_cuda_sees_all():
    assert visible(ALIKE, {}).uuids == (A, B, C)


def test_gpus_of_one_kind_have_cudas_order():
    assert visible(ALIKE, {}).ordered


def test_different_gpus_have_no_order_unless_it_is_set():
    assert not visible(DIFFERENT, {}).ordered
    assert visible(DIFFERENT, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).ordered


def test_a_number_among_different_gpus_is_not_guessed():
    seen = visible(DIFFERENT, {"CUDA_VISIBLE_DEVICES": "0"})

    assert not seen.ordered
    assert seen.uuids == (A, B, C)
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in seen.words


def test_what_torch_found_settles_the_order():
    seen = visible(DIFFERENT, {}, (B, A))

    assert (seen.uuids, seen.ordered) == ((B, A), True)


def test_torch_is_not_asked_to_start_cuda(monkeypatch):
    sleeping = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", sleeping)

    assert torch_order() is None


def test_torchs_uuids_get_nvmls_prefix(monkeypatch):
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 2,
        get_device_properties=lambda k: SimpleNamespace(uuid=("aa11", "MIG-1")[k]),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))

    assert torch_order() == (A, "MIG-1")


def found(wanted=None, environ=None, torch_says=None):
    library = open_library()
    try:
        return find_devices(library, wanted, environ or {}, lambda: torch_says)
    finally:
        library.close()


def test_cudas_number_is_the_place_in_the_list(driver):
    devices = found(environ={"CUDA_VISIBLE_DEVICES": "1,0"}).devices

    assert [(device.uuid, device.cuda_index) for device in devices] == [(uuid(1), 0), (uuid(0), 1)]


def test_a_gpu_is_found_by_cudas_number(driver):
    (device,) = found([0], {"CUDA_VISIBLE_DEVICES": "1"}).devices

    assert device.uuid == uuid(1)


def test_a_gpu_is_found_by_the_beginning_of_its_uuid_without_prefix(driver):
    (device,) = found(["bb0"]).devices

    assert device.uuid == uuid(1)


def test_a_number_without_a_gpu_is_noted(driver):
    result = found([0, 5])

    assert len(result.devices) == 1
    assert "there is no GPU 5" in result.notes[0]


def test_a_number_that_says_nothing_is_not_sampled(driver):
    driver.says("0.name=Tesla T4")
    result = found([0])

    assert result.devices == ()
    assert any("its number says nothing" in note for note in result.notes)


def test_different_gpus_are_all_sampled_without_numbers(driver):
    driver.says("0.name=Tesla T4")
    devices = found().devices

    assert [(device.name, device.cuda_index) for device in devices] == [
        ("Tesla T4", None),
        ("NVIDIA H100 80GB HBM3", None),
    ]


def test_facts_are_in_the_units_of_their_names(driver):
    facts = found().devices[0].facts

    assert facts["memory_total_bytes"] == 80 * 2**30
    assert (facts["power_limit_w"], facts["sm_clock_highest_hz"]) == (700, 1.98e9)
    assert (facts["pcie_gen_highest"], facts["pcie_lanes_highest"]) == (5, 16)


def test_a_fact_that_is_missing_has_its_reason(driver):
    driver.says("nvmlDeviceGetEnforcedPowerLimit=3")
    device = found().devices[0]

    assert "power_limit_w" not in device.facts
    assert device.reasons["power_limit_w"] == "Not Supported, code 3"


def test_a_mig_instance_is_sampled_by_its_uuid(driver, monkeypatch):
    driver.says("mig=1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", uuid(0, "MIG"))
    with Sampler() as sampler:
        (reading,) = sampler.latest()

    assert reading.device.is_mig
    assert reading.values["memory_used_bytes"] == 10240 * 2**20
    assert reading.values["kernel_time_share"] is None


def test_hidden_gpus_are_a_reason(driver, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with Sampler() as sampler:
        assert "no GPU is visible" in sampler.reason
        assert sampler.latest() == ()


def test_a_mig_instance_as_torch_names_it_is_found(driver):
    driver.says("mig=1")
    (device,) = found(torch_says=[uuid(0, "MIG").replace("MIG-", "GPU-")]).devices

    assert (device.uuid, device.cuda_index) == (uuid(0, "MIG"), 0)
