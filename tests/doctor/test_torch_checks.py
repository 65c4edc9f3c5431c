"""Is it the right torch, does it see the card, does a kernel run; and which card a number means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpututor.doctor import State
from gpututor.doctor import torch_checks as t
from gpututor.doctor import visible_checks as v
from gpututor.doctor.facts import Torch
from tests.doctor.places import (
    A100,
    CPU_TORCH,
    DRIVER,
    GIB,
    HERE,
    TORCH,
    found,
    healthy,
    nvidia_card,
    state,
    tree,
    with_torch,
)


def test_a_torch_that_does_not_load_fails_with_its_own_words(tmp_path):
    facts = healthy(tmp_path, torch=Torch(error="OSError: libcudart.so.13: cannot open shared object file"))
    finding = found(t.torch_loads, facts)

    assert finding.state is State.FAIL
    assert "libcudart" in finding.evidence[0]


def test_a_slow_import_is_told(tmp_path):
    assert state(t.torch_loads, with_torch(tmp_path, import_s=40.0)) is State.WARN


def test_a_torch_for_the_cpu_beside_an_nvidia_card_fails(tmp_path):
    finding = found(t.build_fits, healthy(tmp_path, torch=CPU_TORCH))

    assert finding.state is State.FAIL
    assert finding.remedy.startswith("pip install")


def test_a_torch_for_the_cpu_without_a_card_is_right(tmp_path):
    assert state(t.build_fits, healthy(tmp_path, torch=CPU_TORCH, driver=replace(DRIVER, gpus=()))) is State.PASS


def test_an_amd_card_with_a_torch_for_the_cpu_is_told(tmp_path):
    folder = "/sys/bus/pci/devices/0000:03:00.0"
    files = tree(
        tmp_path,
        {f"{folder}/vendor": "0x1002", f"{folder}/class": "0x030000"},
        {f"{folder}/driver": "../drivers/amdgpu"},
    )
    facts = healthy(tmp_path, files=files, torch=CPU_TORCH, driver=replace(DRIVER, gpus=()))

    assert "ROCm" in found(t.build_fits, facts).remedy


def test_a_rocm_torch_beside_an_nvidia_card_fails(tmp_path):
    assert state(t.build_fits, with_torch(tmp_path, cuda=None, hip="6.4")) is State.FAIL


def test_a_gpu_that_torch_does_not_see_fails_with_torchs_reason(tmp_path):
    finding = found(t.torch_sees_gpu, with_torch(tmp_path, available=False, gpus=(), why_not="CUDA unknown error"))

    assert finding.state is State.FAIL
    assert "CUDA unknown error" in finding.evidence[0]


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        ("Error 802: system not yet initialized", "fabricmanager"),
        ("Error 804: forward compatibility was attempted", "compat"),
        ("The NVIDIA driver on your system is too old", "update the driver"),
        ("CUDA unknown error", "nvidia-uvm"),
    ],
)
def test_torchs_reason_decides_on_the_remedy(tmp_path, why, remedy):
    assert remedy in found(t.torch_sees_gpu, with_torch(tmp_path, available=False, gpus=(), why_not=why)).remedy


def test_a_variable_that_hides_cards_is_suspected_first(tmp_path):
    torch = replace(TORCH, available=False, gpus=())
    facts = healthy(tmp_path, torch=torch, environ={"CUDA_VISIBLE_DEVICES": ""})

    assert found(t.torch_sees_gpu, facts).remedy == "unset CUDA_VISIBLE_DEVICES"


def test_a_torch_that_never_answered_is_not_called_blind(tmp_path):
    facts = with_torch(tmp_path, available=None, gpus=(), unfinished="no answer within 120 s")

    assert state(t.torch_sees_gpu, facts) is State.CANNOT_TELL


@pytest.mark.parametrize(
    ("capability", "architectures", "expected"),
    [
        ("8.0", "sm_75 sm_80 sm_90", State.PASS),
        ("8.9", "sm_80 sm_86 sm_90", State.PASS),  # code for 8.6 runs on 8.9
        ("8.0", "sm_75 sm_86", State.FAIL),  # code for 8.6 doesn't run on 8.0
        ("7.0", "sm_75 sm_80", State.FAIL),
        ("12.0", "sm_80 sm_90", State.FAIL),
        ("12.0", "sm_80 sm_90 compute_90", State.WARN),
        ("9.0", "sm_80 sm_90a", State.PASS),
        ("12.1", "sm_100 sm_120", State.PASS),
        (None, "sm_80", State.CANNOT_TELL),
    ],
)
def test_code_runs_on_cards_of_its_major_version_and_ptx_on_newer_ones(tmp_path, capability, architectures, expected):
    gpu = replace(HERE, capability=capability)
    facts = with_torch(tmp_path, gpus=(gpu,), architectures=tuple(architectures.split()))

    assert state(t.code_for_card, facts) is expected


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("CUDA error: no kernel image is available for execution on the device", "built for this card"),
        ("CUDA out of memory", "end the programs"),
        ("CUDA error: all CUDA-capable devices are busy or unavailable", "nvidia-smi -c DEFAULT"),
        ("CUDA error: unspecified launch failure", "dmesg"),
    ],
)
def test_each_refusal_of_a_first_kernel_has_its_remedy(tmp_path, error, remedy):
    finding = found(t.kernel_runs, with_torch(tmp_path, gpus=(replace(HERE, kernel_s=None, error=error),)))

    assert finding.state is State.FAIL
    assert remedy in finding.remedy


def test_a_first_kernel_that_takes_minutes_is_told(tmp_path):
    assert state(t.kernel_runs, with_torch(tmp_path, gpus=(replace(HERE, kernel_s=125.0),))) is State.WARN


def test_a_first_kernel_that_never_came_back_is_not_called_failed(tmp_path):
    facts = with_torch(tmp_path, gpus=(replace(HERE, kernel_s=None),), unfinished="no answer within 120 s")

    assert state(t.kernel_runs, facts) is State.CANNOT_TELL


def test_one_bad_card_of_two_decides(tmp_path):
    second = replace(HERE, index=1, kernel_s=None, error="CUDA out of memory")
    finding = found(t.kernel_runs, with_torch(tmp_path, gpus=(HERE, second)))

    assert finding.state is State.FAIL
    assert all("cuda:1" in line for line in finding.evidence)


def test_another_cuda_before_torchs_own_is_told(tmp_path):
    facts = healthy(tmp_path, environ={"LD_LIBRARY_PATH": "/opt/lib:/usr/local/cuda-11.8/lib64"})

    assert state(t.own_libraries, facts) is State.WARN


def test_a_healthy_machine_passes(tmp_path):
    facts = healthy(tmp_path, files=nvidia_card(tmp_path))

    assert {finding.state for check in t.CHECKS if (finding := check(facts))} == {State.PASS}


# --- which cards are seen -------------------------------------------------------------------------------------------

SECOND = replace(A100, index=1, uuid="GPU-22222222-bbbb")
TWO = replace(DRIVER, gpus=(A100, SECOND))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, State.PASS),
        ("0", State.PASS),
        ("1,0", State.PASS),
        ("GPU-2222", State.PASS),
        ("MIG-33333333", State.PASS),
        ("", State.FAIL),
        ("-1", State.FAIL),
        ("2", State.FAIL),  # CUDA stops at the first entry that names no card: none is left
        ("0,2", State.WARN),  # one is left
        ("0,0", State.FAIL),
        ("cuda:0", State.FAIL),
        ("GPU-9999", State.FAIL),
    ],
)
def test_what_cuda_makes_of_the_variable(tmp_path, value, expected):
    environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}

    assert state(v.visible_list, healthy(tmp_path, environ=environ, driver=TWO)) is expected


def both(first, second):
    return replace(TORCH, gpus=(replace(HERE, uuid=first), replace(HERE, index=1, uuid=second)))


def test_cards_in_the_drivers_order_pass(tmp_path):
    facts = healthy(tmp_path, driver=TWO, torch=both("11111111-aaaa", "22222222-bbbb"))

    assert state(v.same_order, facts) is State.PASS


def test_cards_in_another_order_are_matched_by_uuid(tmp_path):
    finding = found(v.same_order, healthy(tmp_path, driver=TWO, torch=both("22222222-bbbb", "11111111-aaaa")))

    assert finding.state is State.WARN
    assert "cuda:0" in finding.evidence[0]
    assert "card 1" in finding.evidence[0]
    assert finding.remedy == "export CUDA_DEVICE_ORDER=PCI_BUS_ID"


def test_cards_without_a_match_can_not_be_ordered(tmp_path):
    assert state(v.same_order, healthy(tmp_path, driver=TWO, torch=both(None, None))) is State.CANNOT_TELL


def test_a_default_card_with_less_memory_than_another_is_told(tmp_path):
    small, large = replace(HERE, memory_bytes=8 * GIB), replace(HERE, index=1, uuid="22222222-bbbb")
    finding = found(v.first_card, with_torch(tmp_path, gpus=(small, large)))

    assert finding.state is State.WARN
    assert finding.remedy.endswith("CUDA_VISIBLE_DEVICES=GPU-22222222-bbbb")


def test_equal_cards_are_as_good_as_each_other(tmp_path):
    nearly = replace(HERE, index=1, memory_bytes=40 * GIB + 2**20)

    assert state(v.first_card, with_torch(tmp_path, gpus=(HERE, nearly))) is State.PASS


def test_a_variable_that_hides_amds_cards_is_told(tmp_path):
    assert state(v.other_makers_hidden, healthy(tmp_path, environ={"HIP_VISIBLE_DEVICES": ""})) is State.WARN
