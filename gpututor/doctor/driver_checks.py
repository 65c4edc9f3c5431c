"""Is there a GPU, does its driver answer, and does the driver fit torch?"""

from __future__ import annotations

from gpututor.doctor.facts import Facts, Packages
from gpututor.doctor.finding import Answer, Probe, cannot_tell, check, fails, passes, warns
from gpututor.doctor.hardware import (
    container_remedy,
    how_to_get_one,
    nvidia_signs,
    other_makers,
    wheel_command,
)
from gpututor.doctor.readers import NVIDIA, container, in_wsl, pci_devices
from gpututor.doctor.words import counted, listed, version_of

NVML_CODES = "nvml.h, nvmlReturn_t"
COMPATIBILITY = "docs.nvidia.com/deploy/cuda-compatibility"
# nvmlReturn_t in nvml.h
_NO_PERMISSION, _DRIVER_NOT_LOADED, _LIBRARY_NOT_FOUND, _GPU_IS_LOST, _MISMATCH, _UNKNOWN = 4, 9, 12, 15, 18, 999


@check("gpu.present", "GPU in this machine", Probe.DRIVER, Probe.TORCH)
def gpu_present(facts: Facts) -> Answer | None:
    """Whether anything says that there is a GPU."""
    signs = nvidia_signs(facts)
    if facts.driver.gpus:
        return passes(f"{counted(len(facts.driver.gpus), 'NVIDIA GPU')} in reach", *signs)
    if signs:
        return passes("there is an NVIDIA GPU; the checks below say whether it can be used", *signs)
    others = other_makers(facts)
    if facts.torch.other or (facts.torch.hip and facts.torch.available):
        return passes("no NVIDIA GPU; torch has another accelerator here", *others, "torch.accelerator")
    places = "/sys/bus/pci/devices, /dev/dxg and NVML" if facts.machine.platform == "linux" else "NVML"
    read = (f"{places}: no NVIDIA GPU ({facts.driver.error or 'none listed'})", *others)
    words = "no GPU that this torch can use" if others else "no GPU here"
    return warns(f"{words}; the simulated one works", how_to_get_one(facts), *read)


@check("driver.module", "Kernel driver of the card", Probe.DRIVER)
def kernel_driver(facts: Facts) -> Answer | None:
    """Which kernel driver holds each NVIDIA card that Linux lists."""
    cards = [device for device in pci_devices(facts.files) if device.vendor == NVIDIA]
    if not cards:
        return None
    evidence = [f"/sys/bus/pci/devices/{card.address}/driver: {card.driver or 'none'}" for card in cards]
    drivers = {card.driver for card in cards}
    if "nouveau" in drivers:
        return fails(
            "the free driver nouveau holds the card, and CUDA can't run on it",
            "install NVIDIA's driver, which sets nouveau aside (on Ubuntu: sudo ubuntu-drivers install), and reboot",
            *evidence,
        )
    if None in drivers and not facts.driver.gpus:
        return fails(
            "no kernel driver holds the card",
            "sudo modprobe nvidia; if there is no such module, install NVIDIA's driver (sudo ubuntu-drivers install)",
            *evidence,
        )
    if "vfio-pci" in drivers:
        return warns(
            "a card is set aside for a virtual machine",
            "use it in that machine, or give it back to the host: remove its vfio-pci binding and reboot",
            *evidence,
        )
    return passes(f"held by {listed(sorted(filter(None, drivers)) or ['no driver'])}", *evidence)


@check("driver.answers", "NVIDIA's driver", Probe.DRIVER)
def driver_answers(facts: Facts) -> Answer | None:
    """Whether NVML starts, and what to do by its code if it doesn't."""
    driver = facts.driver
    if driver.error is None:
        found = f"driver {driver.version or 'not known'}, for CUDA up to {driver.cuda or 'not known'}"
        return passes(found, "nvmlInit, nvmlSystemGetDriverVersion, nvmlSystemGetCudaDriverVersion")
    evidence = f"nvmlInit: {driver.error}"
    if driver.died:
        words = "asking the driver hangs or crashes"
        remedy = "look whether nvidia-smi answers; if it doesn't, reboot"
        return fails(words, remedy, f"asking NVML: {driver.error}", sources=("XuehaiPan/nvitop#139",))
    if not nvidia_signs(facts):
        return None  # no card, no driver: nothing is wrong
    if driver.code in {_LIBRARY_NOT_FOUND, _DRIVER_NOT_LOADED}:
        return fails("there is a card, and no driver in reach", _driver_remedy(facts), evidence, sources=(NVML_CODES,))
    words, remedy, *source = _BY_CODE.get(
        driver.code, ("the driver could not be asked", "look whether nvidia-smi answers; if it doesn't, reboot")
    )
    return fails(words, remedy, evidence, sources=(NVML_CODES, *source))


_BY_CODE: dict[int | None, tuple[str, ...]] = {
    _MISMATCH: (
        "the driver was updated while its older module is still loaded",
        "reboot (or unload and load the nvidia modules)",
        "XuehaiPan/nvitop#41",
    ),
    _UNKNOWN: (
        "the driver answers with an unknown error, as in a container that lost its rights to the device",
        "restart the container; where there is none, reboot",
        "NVIDIA/nvidia-docker#1730",
    ),
    _NO_PERMISSION: ("you may not use the device", "ask the machine's keeper for rights to /dev/nvidia*"),
    _GPU_IS_LOST: ("a GPU fell off the bus", "look into `sudo dmesg` for Xid 79, then power the machine off and on"),
}


def _driver_remedy(facts: Facts) -> str:
    if in_wsl(facts.files):
        return "install NVIDIA's driver in Windows (none inside WSL), then run: wsl --shutdown"
    if container(facts.files, facts.environ):
        return container_remedy(facts)
    return "install NVIDIA's driver (on Ubuntu: sudo ubuntu-drivers install; else nvidia.com/drivers) and reboot"


@check("driver.reachable", "Access to each card", Probe.DRIVER)
def every_card_opens(facts: Facts) -> Answer | None:
    """Whether the driver opens each card that it counts."""
    lost = facts.driver.unreachable
    if not lost:
        return passes("each one opens", "nvmlDeviceGetHandleByIndex, nvmlDeviceGetName") if facts.driver.gpus else None
    evidence = [f"GPU {one.index}: {one.words}" for one in lost]
    if any(one.code == _GPU_IS_LOST for one in lost):
        words, remedy, *_ = _BY_CODE[_GPU_IS_LOST]
        return fails(words, remedy, *evidence, sources=(NVML_CODES,))
    return warns(
        f"{counted(len(lost), 'card')} may not be used from here",
        "if it should be yours: give the container or job that device too",
        *evidence,
        sources=(NVML_CODES,),
    )


@check("driver.cuda", "Driver and torch's CUDA", Probe.DRIVER, Probe.TORCH)
def driver_fits_torch(facts: Facts) -> Answer | None:
    """Whether the driver is new enough for the CUDA that torch brings along."""
    wheels, drivers = version_of(facts.torch.cuda), version_of(facts.driver.cuda)
    if wheels is None or not nvidia_signs(facts):
        return None
    evidence = (
        f"torch.version.cuda: {facts.torch.cuda}",
        f"NVML: driver {facts.driver.version}, CUDA {facts.driver.cuda}",
    )
    if drivers is None:
        return cannot_tell("the driver doesn't say which CUDA it can run", *evidence)
    if drivers[0] < wheels[0]:
        needed = {12: "525", 13: "580"}.get(wheels[0])
        newer = f"driver {needed} or later" if needed else "a newer driver"
        return fails(
            f"torch was built for CUDA {facts.torch.cuda}, the driver stops at {facts.driver.cuda}",
            f"install {newer}, or a torch for this driver: {wheel_command(facts)}",
            *evidence,
            sources=(COMPATIBILITY,),
        )
    if drivers < wheels:
        return passes(
            "older than torch's CUDA, of the same major version: runs, without compiling PTX anew",
            *evidence,
            sources=(COMPATIBILITY,),
        )
    return passes("the driver is as new as torch's CUDA, or newer", *evidence, sources=(COMPATIBILITY,))


@check("driver.pynvml", "Python's way to the driver")
def binding(facts: Facts) -> Answer | None:
    """Which of the packages that install a `pynvml` is loaded."""
    packages = facts.packages
    installed = [f"{name} {version}" for name, version in packages.versions.items()]
    evidence = (
        f"import pynvml: {packages.pynvml_file or 'nothing of that name'}",
        f"installed: {listed(installed or ['none of nvidia-ml-py, pynvml, nvidia-ml-py3'])}",
    )
    if packages.pynvml_file is None or "nvidia-ml-py" not in packages.versions:
        return warns("nvidia-ml-py is missing, so nothing can be read from a card", _REINSTALL, *evidence)
    if _old_package_wins(packages):
        return warns(
            "an old pynvml package hides nvidia-ml-py, and knows nothing of newer drivers", _REINSTALL, *evidence
        )
    if "pynvml" in packages.versions:
        return warns(
            "the package pynvml only passes on to nvidia-ml-py, with a warning at each import",
            "pip uninstall -y pynvml",
            *evidence,
        )
    return passes(f"nvidia-ml-py {packages.versions['nvidia-ml-py']}", *evidence)


_REINSTALL = "pip uninstall -y pynvml nvidia-ml-py3 nvidia-ml-py && pip install nvidia-ml-py"


def _old_package_wins(packages: Packages) -> bool:
    """The old package is a folder, which Python takes before nvidia-ml-py's pynvml.py; nvidia-ml-py3 overwrites it."""
    is_folder = (packages.pynvml_file or "").replace("\\", "/").endswith("/pynvml/__init__.py")
    return is_folder or "nvidia-ml-py3" in packages.versions


CHECKS = (gpu_present, kernel_driver, driver_answers, every_card_opens, driver_fits_torch, binding)
