"""What a container or a job's control group keeps from the training: the card, shared memory, CPU time, RAM."""

from __future__ import annotations

from gpututor.doctor.facts import Facts
from gpututor.doctor.finding import Answer, Probe, cannot_tell, check, fails, passes, warns
from gpututor.doctor.groups import cpu_quota, memory_limit
from gpututor.doctor.hardware import container_remedy
from gpututor.doctor.readers import NVIDIA, container, pci_devices
from gpututor.doctor.words import binary
from gpututor.text import percent

DOCKERS_SHM_BYTES = 64 * 2**20
"""Docker's size of /dev/shm without --shm-size. Source: docs.docker.com, docker container run."""
SMALL_SHM_BYTES = 2**30
"""Our choice: eight workers with two batches of 64 pictures of 224 × 224 in fp32 each need 600 MB."""
NEAR_LIMIT_SHARE = 0.9
"""Our choice: at nine tenths the next large batch or cache may end the process."""


@check("container.gpu", "The card in the container", Probe.DRIVER)
def card_is_handed_in(facts: Facts) -> Answer | None:
    """Whether a container on a machine with an NVIDIA card got the card's device files."""
    sign = container(facts.files, facts.environ)
    on_bus = [card.address for card in pci_devices(facts.files) if card.vendor == NVIDIA]
    if sign is None or not (on_bus or facts.driver.gpus):
        return None
    devices = [name for name in facts.files.names("/dev") if name.startswith("nvidia")]
    evidence = (
        f"in a container: {sign}",
        f"/dev/nvidia*: {', '.join(devices) or 'none'}",
        f"NVIDIA_VISIBLE_DEVICES: {facts.environ.get('NVIDIA_VISIBLE_DEVICES', 'not set')}",
    )
    if devices or facts.driver.gpus:
        return passes("handed in", *evidence)
    return fails(
        "the machine has an NVIDIA card, and this container was started without it",
        container_remedy(facts),
        *evidence,
        sources=("docs.docker.com, GPU access",),
    )


@check("container.shm", "Shared memory")
def shared_memory(facts: Facts) -> Answer | None:
    """Size and free part of /dev/shm, through which workers hand over their batches; Linux only."""
    if facts.machine.platform != "linux":
        return None
    space = facts.files.space("/dev/shm")  # noqa: S108  # read, not written
    if space is None:
        return cannot_tell("there is no /dev/shm to look at", "os.statvfs('/dev/shm')")
    evidence = f"os.statvfs('/dev/shm'): {binary(space.total_bytes)}, {binary(space.free_bytes)} free"
    source = ("docs.docker.com, docker container run --shm-size", "aws/sagemaker-pytorch-training-toolkit#117")
    remedy = "sudo mount -o remount,size=8G /dev/shm"
    if container(facts.files, facts.environ):
        remedy = "start the container with --shm-size=8g or --ipc=host; in Kubernetes mount an emptyDir in memory there"
    if space.total_bytes <= DOCKERS_SHM_BYTES:
        words = (
            f"{binary(space.total_bytes)}, Docker's default: workers that hand over larger batches die of a bus error"
        )
        return fails(words, remedy, evidence, sources=source)
    if space.total_bytes < SMALL_SHM_BYTES:
        return warns(f"{binary(space.total_bytes)} are little for several workers", remedy, evidence, sources=source)
    if space.free_bytes < SMALL_SHM_BYTES / 2:
        left_over = "look into ls -l /dev/shm for files that a killed program left behind, and remove them"
        return warns(f"only {binary(space.free_bytes)} of it are free", left_over, evidence, sources=source)
    return passes(f"{binary(space.free_bytes)} free", evidence)


@check("container.cpu", "Granted CPU time")
def cpu_time(facts: Facts) -> Answer | None:
    """Whether a control group grants less CPU time than os.cpu_count() promises."""
    quota, n_cpus = cpu_quota(facts.files), facts.machine.n_cpus
    if quota is None:
        return None
    granted, file = quota
    evidence = f"{file}: {granted:g} CPUs' worth of time; os.cpu_count(): {n_cpus}"
    if n_cpus is None or granted >= n_cpus:
        return passes("as much as there is", evidence)
    workers = max(1, int(granted) - 1)
    return warns(
        f"{granted:g} CPUs' worth of time, while programs count {n_cpus} and start as many threads",
        f"more --cpus for the container; or num_workers={workers} and OMP_NUM_THREADS={max(1, int(granted))}",
        evidence,
        sources=("docs.kernel.org, cgroup-v2, cpu.max",),
    )


@check("container.memory", "Granted RAM")
def memory(facts: Facts) -> Answer | None:
    """How near the control group is to its limit on memory, at which the kernel ends processes."""
    found = memory_limit(facts.files)
    if found is None or (facts.machine.ram_bytes is not None and found[0] >= facts.machine.ram_bytes):
        return None
    limit, used, file = found
    evidence = f"{file}: {binary(limit)}, in use {binary(used)}"
    if used is None:
        return cannot_tell(f"limited to {binary(limit)}; what is in use isn't said", evidence)
    if used > NEAR_LIMIT_SHARE * limit:
        return warns(
            f"{percent(used / limit)} of the granted {binary(limit)} in use; at the limit the kernel ends a process",
            "start the container with more --memory, or take fewer workers and a smaller cache",
            evidence,
        )
    return passes(f"{binary(limit)}, of which {binary(used)} are in use", evidence)


CHECKS = (card_is_handed_in, shared_memory, cpu_time, memory)
