"""Is there a GPU, does its driver answer, does it fit torch; each on a made-up machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpututor.doctor import State
from gpututor.doctor import driver_checks as d
from gpututor.doctor.facts import Driver, Packages, Unreachable
from gpututor.doctor.hardware import wheel_command
from tests.doctor.places import (
    A100,
    CPU_TORCH,
    DRIVER,
    MACHINE,
    NO_DRIVER,
    TORCH,
    found,
    healthy,
    nvidia_card,
    state,
    tree,
)


def bare(root, **changed):
    """A machine without driver and with torch for the CPU."""
    return healthy(root, **{"driver": NO_DRIVER, "torch": CPU_TORCH, **changed})


def test_without_any_gpu_the_simulated_one_is_offered(tmp_path):
    finding = found(d.gpu_present, bare(tmp_path))

    assert finding.state is State.WARN
    assert "simulated" in finding.words
    assert "gpututor run --gpu" in finding.remedy


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"COLAB_RELEASE_TAG": "r1"}, "Runtime"),
        ({"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}, "accelerator"),
        ({"SLURM_JOB_ID": "7"}, "srun --gres=gpu:1"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "nvidia.com/gpu: 1"),
    ],
)
def test_the_place_decides_how_a_gpu_is_had(tmp_path, environ, words):
    assert words in found(d.gpu_present, bare(tmp_path, environ=environ)).remedy


def test_a_mac_is_told_of_its_own_device(tmp_path):
    facts = bare(tmp_path, machine=replace(MACHINE, platform="darwin"))

    assert "mps" in found(d.gpu_present, facts).remedy


def test_a_card_on_the_bus_counts_without_a_driver(tmp_path):
    assert state(d.gpu_present, bare(tmp_path, files=nvidia_card(tmp_path))) is State.PASS


def test_a_sound_chip_of_nvidia_is_no_card(tmp_path):
    folder = "/sys/bus/pci/devices/0000:65:00.1"
    files = tree(tmp_path, {f"{folder}/vendor": "0x10de", f"{folder}/class": "0x040300"})

    assert state(d.gpu_present, bare(tmp_path, files=files)) is State.WARN


def test_another_accelerator_is_as_good(tmp_path):
    facts = bare(tmp_path, torch=replace(CPU_TORCH, other="mps"))

    assert state(d.gpu_present, facts) is State.PASS


@pytest.mark.parametrize(
    ("driver", "expected"),
    [("nvidia", State.PASS), ("nouveau", State.FAIL), ("vfio-pci", State.WARN), (None, State.FAIL)],
)
def test_the_kernel_driver_of_the_card_is_judged(tmp_path, driver, expected):
    facts = bare(tmp_path, files=nvidia_card(tmp_path, driver))

    assert state(d.kernel_driver, facts) is expected


def test_without_a_card_no_driver_is_no_fault(tmp_path):
    assert d.driver_answers(bare(tmp_path)) is None


def test_a_card_without_driver_is_a_fault(tmp_path):
    finding = found(d.driver_answers, bare(tmp_path, files=nvidia_card(tmp_path, None)))

    assert finding.state is State.FAIL
    assert "install NVIDIA's driver" in finding.remedy


def test_in_a_container_the_card_is_to_be_handed_in(tmp_path):
    files = nvidia_card(tmp_path, **{"/.dockerenv": ""})

    assert "--gpus all" in found(d.driver_answers, bare(tmp_path, files=files)).remedy


def test_in_wsl_the_driver_belongs_into_windows(tmp_path):
    files = tree(
        tmp_path,
        {
            "/proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2",
            "/dev/dxg": "",
            "/usr/lib/wsl/lib/libnvidia-ml.so.1": "",
        },
    )

    assert "in Windows" in found(d.driver_answers, bare(tmp_path, files=files)).remedy


@pytest.mark.parametrize(
    ("code", "remedy"),
    [(18, "reboot"), (999, "restart the container"), (4, "rights"), (15, "Xid 79"), (77, "nvidia-smi")],
)
def test_each_error_of_the_driver_has_its_remedy(tmp_path, code, remedy):
    finding = found(d.driver_answers, bare(tmp_path, driver=Driver(code=code, error="NVMLError")))

    assert finding.state is State.FAIL
    assert remedy in finding.remedy


def test_a_probe_that_died_is_a_fault_of_the_driver(tmp_path):
    driver = Driver(error="the process that asked ended by SIGSEGV", died=True)
    finding = found(d.driver_answers, bare(tmp_path, driver=driver))

    assert finding.state is State.FAIL
    assert "SIGSEGV" in finding.evidence[0]


def test_a_lost_card_fails_and_a_forbidden_one_warns(tmp_path):
    lost = replace(DRIVER, unreachable=(Unreachable(1, 15, "GPU is lost"),))
    forbidden = replace(DRIVER, unreachable=(Unreachable(1, 4, "No permission"),))

    assert state(d.every_card_opens, healthy(tmp_path, driver=lost)) is State.FAIL
    assert state(d.every_card_opens, healthy(tmp_path, driver=forbidden)) is State.WARN


@pytest.mark.parametrize(
    ("wheel", "driver", "expected"),
    [
        ("13.0", "13.0", State.PASS),
        ("12.6", "13.0", State.PASS),
        ("12.8", "12.2", State.PASS),  # of the same major version
        ("13.0", "12.8", State.FAIL),
        ("12.6", "11.4", State.FAIL),
        ("12.6", None, State.CANNOT_TELL),
        (None, "12.6", None),
    ],
)
def test_a_driver_runs_cuda_of_its_major_version_and_older(tmp_path, wheel, driver, expected):
    facts = healthy(tmp_path, torch=replace(TORCH, cuda=wheel), driver=replace(DRIVER, cuda=driver))

    assert state(d.driver_fits_torch, facts) is expected


@pytest.mark.parametrize(
    ("capability", "cuda", "build"),
    [("7.0", "13.0", "cu126"), ("8.0", "12.4", "cu126"), ("8.0", "13.0", "cu130"), ("12.0", "13.0", "cu130")],
)
def test_the_wheel_is_chosen_by_card_and_driver(tmp_path, capability, cuda, build):
    facts = healthy(tmp_path, driver=replace(DRIVER, cuda=cuda, gpus=(replace(A100, capability=capability),)))

    assert wheel_command(facts).endswith(f"/whl/{build}")


@pytest.mark.parametrize(
    ("versions", "file", "expected"),
    [
        ({"nvidia-ml-py": "13.6"}, "/s/pynvml.py", State.PASS),
        ({"nvidia-ml-py": "13.6", "pynvml": "11.5.0"}, "/s/pynvml/__init__.py", State.WARN),
        ({"nvidia-ml-py": "13.6", "pynvml": "11.5.0"}, "C:\\s\\pynvml\\__init__.py", State.WARN),
        ({"nvidia-ml-py": "13.6", "nvidia-ml-py3": "7.352"}, "/s/pynvml.py", State.WARN),
        ({"nvidia-ml-py": "13.6", "pynvml": "13.0.1"}, "/s/pynvml.py", State.WARN),
        ({}, None, State.WARN),
    ],
)
def test_packages_that_fight_for_the_name_pynvml_are_told_apart(tmp_path, versions, file, expected):
    assert state(d.binding, healthy(tmp_path, packages=Packages(versions, file))) is expected


def test_the_deprecated_package_alone_is_taken_out_and_the_old_one_repaired(tmp_path):
    both = {"nvidia-ml-py": "13.6", "pynvml": "13.0.1"}
    redirects = found(d.binding, healthy(tmp_path, packages=Packages(both, "/s/pynvml.py")))
    hides = found(d.binding, healthy(tmp_path, packages=Packages(both, "/s/pynvml/__init__.py")))

    assert redirects.remedy == "pip uninstall -y pynvml"
    assert "pip install nvidia-ml-py" in hides.remedy


def test_a_healthy_machine_passes(tmp_path):
    facts = healthy(tmp_path, files=nvidia_card(tmp_path))

    assert {finding.state for check in d.CHECKS if (finding := check(facts))} == {State.PASS}
