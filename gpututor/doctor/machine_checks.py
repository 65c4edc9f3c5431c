"""Can the host keep a GPU fed: its CPUs, threads, memory and power?"""

from __future__ import annotations

from gpututor.doctor.facts import Facts, Machine
from gpututor.doctor.finding import Answer, Probe, cannot_tell, check, fails, passes, warns
from gpututor.doctor.groups import cpu_quota
from gpututor.doctor.readers import NVIDIA, in_wsl, pci_devices
from gpututor.doctor.words import binary, counted
from gpututor.text import percent

CPUS_A_GPU = 4
"""Source: pytorch/examples#387, where some 32 CPUs were needed to decode pictures for 8 GPUs."""
LITTLE_RAM_SHARE, LITTLE_RAM_BYTES = 0.1, 2 * 2**30
"""Our choice: a loader worker with torch takes about half a GiB, and the file cache wants the rest."""
FEW_OPEN_FILES = 1024
"""The usual limit on Linux. Source: pytorch/pytorch#973, where loaders with workers ran out of open files."""


def usable_cpus(facts: Facts) -> float | None:
    """How many CPUs this process may really use: its affinity, and its control group's share of time."""
    machine = facts.machine
    bounds = [float(len(machine.affinity))] if machine.affinity else []
    quota = cpu_quota(facts.files)
    bounds += [float(n) for n in (machine.n_cpus, quota and quota[0]) if n]
    return min(bounds) if bounds else None


@check("cpu.count", "CPUs for the loader", Probe.DRIVER)
def cpu_count(facts: Facts) -> Answer | None:
    """Whether there are enough CPUs to prepare batches for each GPU."""
    usable = usable_cpus(facts)
    if usable is None:
        return cannot_tell("the system doesn't say how many CPUs there are", "os.cpu_count()")
    n_gpus = max(1, len(facts.driver.gpus))
    evidence = f"os.cpu_count() {facts.machine.n_cpus}, usable {usable:g}, GPUs {len(facts.driver.gpus)}"
    if usable >= CPUS_A_GPU * n_gpus:
        return passes(f"{usable:g} CPUs", evidence)
    wanted = f"{CPUS_A_GPU * n_gpus} or more for {counted(n_gpus, 'GPU')}"
    return warns(
        f"{usable:g} usable; preparing pictures takes {wanted}",
        f"prepare the data once beforehand, or take a machine with {CPUS_A_GPU} CPUs or more a GPU",
        evidence,
        sources=("pytorch/examples#387",),
    )


@check("cpu.affinity", "CPUs in reach")
def affinity(facts: Facts) -> Answer | None:
    """Whether something tied this process to a few of the machine's CPUs."""
    machine = facts.machine
    if machine.affinity is None or machine.n_cpus is None:
        return None
    evidence = f"os.sched_getaffinity(0): {counted(len(machine.affinity), 'CPU')} of {machine.n_cpus}"
    if len(machine.affinity) >= machine.n_cpus:
        return passes("all of them", evidence)
    n = len(machine.affinity)
    return warns(
        f"tied to {counted(n, 'CPU')} of {machine.n_cpus}, while os.cpu_count() says {machine.n_cpus}",
        f"take at most {n} loader workers; if you want more CPUs: taskset, numactl or Slurm's --cpus-per-task",
        evidence,
    )


@check("cpu.near_gpu", "CPUs near the card")
def near_the_card(facts: Facts) -> Answer | None:
    """Whether this process may use CPUs of the socket that its NVIDIA card hangs on."""
    ours = facts.machine.affinity
    cards = [card for card in pci_devices(facts.files) if card.vendor == NVIDIA and card.local_cpus]
    if not ours or not cards:
        return None
    far = [card.address for card in cards if not ours & card.local_cpus]
    evidence = [f"/sys/bus/pci/devices/{card.address}/local_cpulist: {len(card.local_cpus)} CPUs" for card in cards]
    if len(far) < len(cards):
        return passes("yes, for one card at least" if far else "yes", *evidence)
    return warns(
        "this process may only use CPUs of another socket than the card's: copies go a longer way",
        f"numactl --cpunodebind={facts.files.read(f'/sys/bus/pci/devices/{far[0]}/numa_node') or 'N'} python train.py",
        *evidence,
    )


@check("cpu.threads", "Threads of libraries", Probe.TORCH)
def threads(facts: Facts) -> Answer | None:
    """Whether each process starts more threads than there are CPUs; loader workers multiply them."""
    usable = usable_cpus(facts)
    if usable is None:
        return None
    text = facts.environ.get("OMP_NUM_THREADS")
    wanted = int(text) if text and text.isdigit() else None
    seen = wanted or facts.machine.n_cpus
    evidence = [f"OMP_NUM_THREADS {text or 'not set'}, usable CPUs {usable:g}, os.cpu_count() {facts.machine.n_cpus}"]
    if facts.torch.n_threads is not None:
        evidence.append(f"torch.get_num_threads(): {facts.torch.n_threads}")
    if seen is not None and seen > max(1.0, usable):
        words = f"libraries may start {counted(seen, 'thread')} a process on {usable:g} CPUs; workers multiply that"
        return warns(
            words,
            f"set OMP_NUM_THREADS={max(1, int(usable))}, and call cv2.setNumThreads(0) in each loader worker",
            *evidence,
            sources=("open-mmlab/mmdetection#6867", "pytorch/pytorch#82219"),
        )
    words = f"{seen} a process" if wanted else "one for each CPU in the main process, one in torch's loader workers"
    return passes(words, *evidence)


@check("cpu.load", "Load on the CPUs")
def load(facts: Facts) -> Answer | None:
    """Whether other programs keep the CPUs busy already."""
    busy, usable = facts.machine.load_1_min, facts.machine.n_cpus
    if busy is None or not usable:
        return None
    evidence = f"load average over 1 min: {busy:.1f} on {counted(usable, 'CPU')}"
    if busy > usable:
        return warns(
            "more programs want to run than there are CPUs; if they aren't your training, its loader will wait",
            "look into top for what runs, or start fewer workers",
            evidence,
        )
    return passes(f"load {busy:.1f} on {counted(usable, 'CPU')}", evidence)


@check("cpu.governor", "Clock of the CPU")
def governor(facts: Facts) -> Answer | None:
    """Whether the CPU is told to stay slow: a GPU that waits for launches waits for one CPU core.

    Source: the kernel's documentation of cpufreq; intel_pstate's and amd_pstate's own "powersave" does raise the clock.
    """
    folder = "/sys/devices/system/cpu/cpu0/cpufreq"
    name, driver = facts.files.read(f"{folder}/scaling_governor"), facts.files.read(f"{folder}/scaling_driver") or ""
    if name is None:
        return None
    evidence = f"{folder}: governor {name}, driver {driver or 'not known'}"
    if name == "powersave" and "pstate" not in driver:
        remedy = "as root: cpupower frequency-set --governor performance"
        return warns("the CPU is kept at its lowest clock", remedy, evidence)
    return passes(name, evidence)


@check("machine.battery", "Power supply")
def battery(facts: Facts) -> Answer | None:
    """Whether a laptop runs on its battery, which holds CPU and GPU back."""
    folder = "/sys/class/power_supply"
    mains = [name for name in facts.files.names(folder) if facts.files.read(f"{folder}/{name}/type") == "Mains"]
    states = {name: facts.files.number(f"{folder}/{name}/online") for name in mains}
    if not mains:
        return None
    evidence = [f"{folder}/{name}/online: {state}" for name, state in states.items()]
    if any(states.values()):
        return passes("from the mains", *evidence)
    return warns("on battery: CPU and GPU are held back", "plug it in", *evidence)


@check("ram.free", "Free RAM")
def free_ram(facts: Facts) -> Answer | None:
    """Whether there is memory for loader workers and for the files that they read."""
    whole, free = facts.machine.ram_bytes, facts.machine.ram_available_bytes
    if whole is None or free is None:
        return cannot_tell("the system doesn't say", "psutil.virtual_memory()")
    evidence = f"psutil.virtual_memory(): {binary(free)} of {binary(whole)} available"
    if free < max(LITTLE_RAM_SHARE * whole, LITTLE_RAM_BYTES):
        return warns(
            f"only {binary(free)} available: files are read from disk again and again, and the system may swap",
            "end what you don't need, or take fewer workers and a smaller cache of data",
            evidence,
        )
    return passes(f"{binary(free)} of {binary(whole)} available", evidence)


@check("ram.swap", "Swap")
def swap(facts: Facts) -> Answer | None:
    """Whether memory has gone to the disk."""
    machine: Machine = facts.machine
    if not machine.swap_bytes or machine.swap_used_bytes is None or not machine.ram_bytes:
        return None
    share = machine.swap_used_bytes / machine.ram_bytes
    evidence = f"psutil.swap_memory(): {binary(machine.swap_used_bytes)} of {binary(machine.swap_bytes)} used"
    # A few per cent are long-forgotten pages, which Linux moves out even when memory is free.
    if share > 0.05:
        words = f"{binary(machine.swap_used_bytes)} on disk, {percent(share)} of the RAM's size: who needs them crawls"
        return warns(
            words,
            "take fewer workers or a smaller cache in RAM; vmstat 1 shows in si and so whether it swaps now",
            evidence,
            sources=("ultralytics/yolov5#9126",),
        )
    return passes("hardly used", evidence)


@check("machine.open_files", "Open files")
def open_files(facts: Facts) -> Answer | None:
    """Whether a process may open as many files as workers need to pass tensors."""
    n = facts.machine.n_open_files
    if n is None:
        return None
    evidence = f"resource.RLIMIT_NOFILE: {n:,}"
    if n < FEW_OPEN_FILES:
        words = f"{n:,} a process; loader workers need one for each tensor on its way"
        return warns(words, "ulimit -n 65535", evidence, sources=("pytorch/pytorch#973",))
    return passes(f"{n:,} a process", evidence)


@check("machine.wsl", "Linux inside Windows")
def wsl(facts: Facts) -> Answer | None:
    """Which WSL this is; the first has no GPU. Source: docs.nvidia.com/cuda/wsl-user-guide."""
    if not in_wsl(facts.files):
        return None
    release = facts.files.read("/proc/version") or ""
    source = ("docs.nvidia.com/cuda/wsl-user-guide",)
    if "WSL2" in release or "microsoft-standard" in release:
        words = "WSL 2: CUDA works; some readings of the card are missing, and Windows' own files are slow from here"
        return passes(words, f"/proc/version: {release}", sources=source)
    remedy = "in Windows: wsl --set-version NAME 2, with NAME from wsl --list"
    return fails("WSL 1 has no GPU", remedy, f"/proc/version: {release}", sources=source)


CHECKS = (
    cpu_count,
    affinity,
    near_the_card,
    threads,
    load,
    governor,
    battery,
    free_ram,
    swap,
    open_files,
    wsl,
)
