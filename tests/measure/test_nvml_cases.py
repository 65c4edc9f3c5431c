"""What went wrong in other programs that read NVML, one by one; each case names where it was reported."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from gpututor.measure.nvml import Sampler, find_gpus, read
from gpututor.measure.nvml.devices import find_devices
from gpututor.measure.nvml.library import open_library
from gpututor.measure.nvml.probing import State
from gpututor.measure.nvml.processes import processes
from tests.measure.fake_nvml.by_hand import by_hand
from tests.measure.fake_nvml.driver import uuid

QUICK_S = 0.02


def reason(driver, script):
    driver.says(script)
    with Sampler(QUICK_S) as sampler:
        return sampler.reason


def listed(driver, script):
    """Processes on GPU 0."""
    driver.says(script)
    library = open_library()
    try:
        return processes(library, find_devices(library, [0]).devices[0])
    finally:
        library.close()


def without_binding(code):
    """Output of a program in which nvidia-ml-py can't be imported."""
    hidden = "import sys; sys.modules['pynvml'] = None; "
    done = subprocess.run([sys.executable, "-c", hidden + code], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.strip()


def test_01_an_error_without_a_hash_is_no_trouble(driver):  # gpustat 35
    assert "no NVIDIA driver is installed" in reason(driver, "nvmlInitWithFlags=12")


def test_02_a_library_off_the_loaders_path_is_named(driver):  # gpustat 134
    assert "libnvidia-ml.so.1" in reason(driver, "nvmlInitWithFlags=12")


def test_03_a_mismatch_of_versions_is_said(driver):  # gpustat 147
    assert "restart the machine" in reason(driver, "nvmlInitWithFlags=18")


def test_04_what_the_driver_keeps_is_not_memory_in_use(driver):  # gpustat 141
    with by_hand() as rounds:
        assert rounds.at(0).value("memory_used_bytes") == 10240 * 2**20  # the older call says 512 MiB more


def test_05_not_supported_ends_nothing(driver):  # gpustat 144
    functions = ("UtilizationRates", "PowerUsage", "Temperature", "ClockInfo", "MemoryInfo_v2", "MemoryInfo")
    driver.says(";".join(f"nvmlDeviceGet{name}=3" for name in functions))
    with Sampler(QUICK_S) as sampler:
        assert sampler.running
        assert sampler.reason is None


def test_06_one_bad_gpu_hides_no_other(driver):  # gpustat 125 and 81
    driver.says("0.nvmlDeviceGetHandleByIndex_v2=999")
    with Sampler(QUICK_S) as sampler:
        (reading,) = sampler.latest()

    assert reading.device.uuid == uuid(1)
    assert "GPU 0 can't be opened" in sampler.notes[0].said
    assert len(find_gpus().names) == 1


def test_07_a_driver_of_450_lacks_functions_and_gives_the_rest(built_old):  # gpustat 138 and 105
    with built_old.in_place(), Sampler(QUICK_S) as sampler:
        values = sampler.latest()[0].values

    assert values["power_w"] == pytest.approx(123.456)
    assert values["clock_reasons"] == 4
    assert values["sm_share"] is None


@pytest.mark.parametrize("version", ["535.43.02", "535.54.03", "535.86.10"])
def test_08_drivers_with_another_process_structure_are_not_believed(driver, version):  # gpustat 161, nvitop 79, 88, 89
    found = listed(driver, f"driver={version};pids=4242")

    assert found.found is None
    assert version in found.reason


def test_08_the_driver_after_them_is_believed(driver):
    assert [p.host_pid for p in listed(driver, "driver=535.104.05;pids=4242").found] == [4242]


@pytest.mark.parametrize("pid", [0, 2**31, 4_294_967_295])
def test_09_a_process_number_that_cannot_be_is_refused(driver, pid):  # nvitop 181
    assert "can't be" in listed(driver, f"pids={pid}").reason


def test_10_the_handle_of_a_lost_gpu_is_never_passed_on(driver):  # nvitop 139
    with by_hand() as rounds:
        rounds.at(0)
        driver.says("0.lost=1")
        rounds.every(until_s=10)

    assert rounds.gpus[0].lost
    assert driver.n_asked_after_loss == 0
    assert driver.n_bad_handles == 0


def test_11_a_mismatch_after_an_update_is_one_sentence_everywhere(driver):  # nvitop 41
    driver.says("nvmlInitWithFlags=18")

    assert "updated while the old one is still loaded" in find_gpus().reason
    assert "updated while the old one is still loaded" in read(uuid(0)).reasons["power_w"]


def test_12_utilization_of_a_divided_gpu_is_none(driver):  # nvitop 5, gpustat 102
    driver.says("mig=1")
    with by_hand() as rounds:
        rounds.at(0, 1.2)

        assert rounds.value("kernel_time_share") is None
        assert rounds.standing("kernel_time_samples_share").state is State.UNSUPPORTED
        assert rounds.value("power_w") == pytest.approx(123.456)


def test_13_a_gpu_that_shares_the_machines_memory_has_none_to_tell(driver):  # nvitop 208, gpustat 179, nvtop 411
    driver.says("nvmlDeviceGetMemoryInfo=3;nvmlDeviceGetMemoryInfo_v2=3")
    with Sampler(QUICK_S) as sampler:
        (reading, _) = sampler.latest()

    assert reading.values["memory_used_bytes"] is None
    assert "memory_total_bytes" in reading.device.reasons
    assert reading.values["kernel_time_share"] == pytest.approx(0.37)


def test_14_power_and_its_limit_may_be_missing(driver):  # nvitop 86, nvidia_oc 22, nviwatch 28
    driver.says("nvmlDeviceGetPowerUsage=3;nvmlDeviceGetEnforcedPowerLimit=3;nvmlDeviceGetPowerManagementLimit=3")
    with Sampler(QUICK_S) as sampler:
        reading = sampler.latest()[0]

    assert reading.values["power_w"] is None
    assert "power_limit_w" not in reading.device.facts


def test_15_unknown_error_for_utilization_is_asked_once(driver):  # scalene 262, 305, 471
    driver.says("nvmlDeviceGetUtilizationRates=999;count=1")
    with by_hand() as rounds:
        rounds.every(until_s=10)

        assert rounds.standing("kernel_time_share").state is State.UNSUPPORTED
    assert driver.count("nvmlDeviceGetUtilizationRates") == 1


def test_15_unknown_error_after_it_worked_is_tried_again(driver):
    with by_hand() as rounds:
        rounds.at(0)
        driver.says("nvmlDeviceGetUtilizationRates=999")
        rounds.at(0.2)

        assert rounds.standing("kernel_time_share").words == "failed 1 times in a row"


def test_16_an_old_card_without_utilization_gives_the_rest(driver):  # scalene 469
    driver.says("name=GeForce GT 710;nvmlDeviceGetUtilizationRates=3;nvmlDeviceGetSamples=3;gpm=0")
    with Sampler(QUICK_S) as sampler:
        values = sampler.latest()[0].values

    assert values["kernel_time_share"] is None
    assert values["temperature_c"] == 55


def test_17_a_missing_function_is_no_error_where_nobody_asked_for_a_gpu(driver):  # scalene 591
    driver.says("nvmlInitWithFlags=13")

    assert "does not answer" in find_gpus().reason


def test_18_accounting_is_neither_asked_nor_set():  # scalene 786
    from pathlib import Path

    import gpututor.measure.nvml

    folder = Path(gpututor.measure.nvml.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))

    assert "Accounting" not in source
    assert "DeviceSet" not in source
    assert "DeviceClear" not in source


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_19_a_forked_child_opens_the_library_again(driver):  # scalene pull request 169
    with Sampler(QUICK_S):
        pid = os.fork()
        if not pid:
            os._exit(0 if read(uuid(0)).power_w else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_20_a_thread_that_sleeps_takes_a_small_share_of_a_core(driver):  # wandb 8359
    import time

    with Sampler(0.2) as sampler:
        time.sleep(1.0)

    assert sampler.summary().cost.cpu_share < 0.02  # ten times the bar that `gpututor bench speed` holds it to


def test_21_the_binding_is_the_one_that_is_installed():  # wandb 3597: a stale copy that was shipped along
    from pathlib import Path

    import gpututor

    assert not list(Path(gpututor.__file__).parent.rglob("*pynvml*"))


def test_22_what_fails_is_told_once(driver, caplog):  # lightning 189 and 3420
    driver.says("nvmlDeviceGetTemperature=3;nvmlDeviceGetPowerUsage=17;count=1;gpm=0")
    with caplog.at_level(logging.INFO), by_hand() as rounds:
        rounds.every(until_s=60)

    told = [record.getMessage() for record in caplog.records]
    assert len([line for line in told if "power_w" in line]) == 1
    assert len([line for line in told if "temperature_c" in line]) == 1


def test_23_a_driver_that_answers_nothing_ends_nothing(driver):  # dask 5342, cudf 9955: WSL
    functions = ("UtilizationRates", "PowerUsage", "ClockInfo", "Samples", "FieldValues", "Temperature")
    driver.says(";".join(f"nvmlDeviceGet{name}=3" for name in functions))
    with Sampler(QUICK_S) as sampler:
        reading = sampler.latest()[0]

    assert sampler.reason is None
    assert reading.values["power_w"] is None


def test_24_a_mig_instance_shows_nothing_instead_of_zero(driver, monkeypatch):  # dask 8739
    driver.says("mig=1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", uuid(0, "MIG"))
    with Sampler(QUICK_S) as sampler:
        values = sampler.latest()[0].values

    known = {name for name, value in values.items() if value is not None}
    assert known == {"memory_used_bytes"}


def test_25_a_gpu_is_found_by_its_uuid_whatever_its_number(driver, monkeypatch):  # pytorch 94472 and 86539, vllm 53834
    driver.says("1.power_mw=50000")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with Sampler(QUICK_S, devices=[0]) as sampler:
        (reading,) = sampler.latest()

    assert reading.values["power_w"] == 50


def test_26_a_gpu_whose_rights_were_taken_away_fails_without_noise(driver):  # nvidia-docker 1730
    with by_hand() as rounds:
        rounds.at(0)
        driver.says(";".join(f"nvmlDeviceGet{name}=999" for name in ("PowerUsage", "UtilizationRates", "ClockInfo")))
        rounds.every(until_s=10)

        assert rounds.value("power_w") is None
        assert rounds.why("power_w").startswith("failed")


def test_26_such_a_container_is_told_to_restart(driver):
    assert "restart it" in reason(driver, "nvmlInitWithFlags=999")


def test_26_a_machine_without_the_binding_gets_one_sentence():  # nvdashboard 69 and 33
    code = "from gpututor.measure.nvml import Sampler, find_gpus; s = Sampler().start(); print(s.reason, s.latest())"
    said = without_binding(code)

    assert "pip install nvidia-ml-py" in said
    assert said.endswith("()")
