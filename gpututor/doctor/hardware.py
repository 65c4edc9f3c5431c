"""Which GPUs a machine holds by the signs outside torch, and how one comes into its reach."""

from __future__ import annotations

from collections.abc import Mapping

from gpututor.doctor.facts import Facts, Gpu
from gpututor.doctor.readers import AMD, INTEL, NVIDIA, container, in_wsl, pci_devices
from gpututor.doctor.words import version_of

SIMULATED = "gpututor run --gpu A100-SXM4-80GB train.py"
WHEELS = "github.com/pytorch/pytorch RELEASE.md, table of CUDA versions and architectures"

# Driver not loaded and library not found. Source: nvml.h, nvmlReturn_t.
_WITHOUT_A_CARD_TOO = {9, 12}


def nvidia_signs(facts: Facts) -> tuple[str, ...]:
    """What says that an NVIDIA GPU is in this machine, whether or not a program can use it; empty without a sign."""
    found = [f"NVML: {gpu.called}, {gpu.name or 'without a name'}" for gpu in facts.driver.gpus]
    if facts.driver.died or (facts.driver.code or 9) not in _WITHOUT_A_CARD_TOO:
        found.append(f"NVML: {facts.driver.error}")
    found += [f"NVML: GPU {one.index}, {one.words}" for one in facts.driver.unreachable]
    found += [
        f"/sys/bus/pci/devices/{d.address}: vendor NVIDIA" for d in pci_devices(facts.files) if d.vendor == NVIDIA
    ]
    # Microsoft's GPU device and NVIDIA's library from Windows. Source: docs.nvidia.com/cuda/wsl-user-guide.
    if facts.files.exists("/dev/dxg") and facts.files.exists("/usr/lib/wsl/lib/libnvidia-ml.so.1"):
        found.append("/dev/dxg and /usr/lib/wsl/lib/libnvidia-ml.so.1: an NVIDIA driver in Windows")
    if facts.files.exists("/etc/nv_tegra_release"):
        found.append("/etc/nv_tegra_release: an NVIDIA Jetson")
    return tuple(found)


def other_makers(facts: Facts) -> tuple[str, ...]:
    """Lines on graphics devices of AMD and Intel; a processor's own graphics count too, since PCI doesn't tell."""
    makers = {AMD: "AMD", INTEL: "Intel"}
    return tuple(
        f"/sys/bus/pci/devices/{d.address}: vendor {makers[d.vendor]}, kernel driver {d.driver or 'none'}"
        for d in pci_devices(facts.files)
        if d.vendor in makers
    )


# Variables that the places set, and what gives a program a GPU there.
_PLACES: Mapping[str, str] = {
    "COLAB_RELEASE_TAG": "in Colab choose Runtime, Change runtime type, a GPU; then run doctor again",
    "KAGGLE_KERNEL_RUN_TYPE": "in the Kaggle notebook's settings choose an accelerator; then run doctor again",
    "SLURM_JOB_ID": "this Slurm job has no GPU; ask for one: srun --gres=gpu:1 --pty bash",
    "SLURM_CONF": "log-in nodes rarely have a GPU; ask Slurm for one: srun --gres=gpu:1 --pty bash",
    "KUBERNETES_SERVICE_HOST": "ask for a GPU in the pod's resources: limits: nvidia.com/gpu: 1",
}


def how_to_get_one(facts: Facts) -> str:
    """What gives this machine a GPU, or lets one work without."""
    for name, words in _PLACES.items():
        if facts.environ.get(name):
            return words
    if facts.machine.platform == "darwin":
        return (
            f"no Mac can have an NVIDIA card now; torch's own device here is mps, and this simulates one: {SIMULATED}"
        )
    if in_wsl(facts.files):
        return "install NVIDIA's driver in Windows (none inside WSL), then run: wsl --shutdown"
    if container(facts.files, facts.environ):
        return f"if the computer has a GPU: docker run --gpus all …; if not, nothing to repair: {SIMULATED}"
    return f"nothing to repair: {SIMULATED} shows your script on a simulated card; gpututor machines lists what to rent"


def container_remedy(facts: Facts) -> str:
    """How this kind of container is given a GPU."""
    if facts.environ.get("KUBERNETES_SERVICE_HOST"):
        return _PLACES["KUBERNETES_SERVICE_HOST"]
    if facts.environ.get("SINGULARITY_NAME") or facts.environ.get("APPTAINER_NAME"):
        return "start it with: apptainer exec --nv …"
    return "start it with: docker run --gpus all … (the host needs nvidia-container-toolkit)"


def wheel_command(facts: Facts) -> str:
    """The command that installs a torch for the cards and the driver here.

    Source: PyTorch's RELEASE.md: CUDA 12.6 builds hold code for Maxwell to Hopper, 13.0 builds for Turing and later;
    docs.nvidia.com/deploy/cuda-compatibility: CUDA 13 needs driver 580 or later, CUDA 12 needs 525.
    """
    capabilities = [found for gpu in facts.driver.gpus if (found := version_of(gpu.capability))]
    cuda = version_of(facts.driver.cuda)
    old_card = bool(capabilities) and min(capabilities) < (7, 5)
    old_driver = cuda is not None and cuda < (13, 0)
    build = "cu126" if old_card or old_driver else "cu130"
    return f'pip install --force-reinstall "torch<2.15" --index-url https://download.pytorch.org/whl/{build}'


def works_hard(gpu: Gpu) -> bool | None:
    """Whether the card has work enough for its clocks and link to be up; None where the driver doesn't say."""
    if gpu.kernel_time_share is None:
        return None
    return gpu.kernel_time_share >= BUSY_SHARE


BUSY_SHARE = 0.2
"""Our choice: with kernels a fifth of the time a card has left its resting clocks and PCIe generation."""
