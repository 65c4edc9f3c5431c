"""Can the host keep a GPU fed: CPUs, threads, memory, container, on trees of files and made-up records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpututor.doctor import State
from gpututor.doctor import container_checks as c
from gpututor.doctor import machine_checks as m
from gpututor.doctor.groups import cpu_quota, memory_limit
from gpututor.doctor.readers import Files, Space, cpu_list
from tests.doctor.places import A100, DRIVER, GIB, MACHINE, NO_DRIVER, found, healthy, nvidia_card, state, tree

CPUFREQ = "/sys/devices/system/cpu/cpu0/cpufreq"


def on(root, **changed):
    """The healthy machine with some of its own readings changed."""
    return healthy(root, machine=replace(MACHINE, **changed))


def test_eight_cpus_are_enough_for_two_gpus_and_too_few_for_four(tmp_path):
    two, four = (healthy(tmp_path, driver=replace(DRIVER, gpus=(A100,) * n)) for n in (2, 4))

    assert state(m.cpu_count, two) is State.PASS
    assert state(m.cpu_count, four) is State.WARN


@pytest.mark.parametrize(
    ("affinity", "quota", "usable"), [(8, None, 8), (2, None, 2), (8, "300000 100000", 3), (2, "50000 100000", 0.5)]
)
def test_usable_cpus_are_what_affinity_and_quota_leave(tmp_path, affinity, quota, usable):
    files = tree(tmp_path, {"/sys/fs/cgroup/cpu.max": quota} if quota else {})
    facts = healthy(tmp_path, files=files, machine=replace(MACHINE, affinity=frozenset(range(affinity))))

    assert m.usable_cpus(facts) == usable


def test_unknown_cpus_are_not_none_at_all(tmp_path):
    assert state(m.cpu_count, on(tmp_path, n_cpus=None, affinity=None)) is State.CANNOT_TELL


def test_a_process_tied_to_few_cpus_is_told(tmp_path):
    assert state(m.affinity, on(tmp_path, affinity=frozenset({0, 1}))) is State.WARN
    assert state(m.affinity, on(tmp_path)) is State.PASS
    assert state(m.affinity, on(tmp_path, affinity=None)) is None


def test_cpus_of_another_socket_than_the_cards_are_told(tmp_path):
    facts = healthy(tmp_path, files=nvidia_card(tmp_path))  # near the card: 0 to 3
    far = replace(facts, machine=replace(MACHINE, affinity=frozenset({4, 5})))

    assert state(m.near_the_card, facts) is State.PASS
    assert state(m.near_the_card, far) is State.WARN


@pytest.mark.parametrize(
    ("environ", "affinity", "expected"),
    [
        ({}, 8, State.PASS),
        ({}, 2, State.WARN),  # libraries count 8
        ({"OMP_NUM_THREADS": "2"}, 2, State.PASS),
        ({"OMP_NUM_THREADS": "32"}, 8, State.WARN),
        ({"OMP_NUM_THREADS": "4,2"}, 8, State.PASS),  # nested levels, which we don't judge
    ],
)
def test_more_threads_than_cpus_are_told(tmp_path, environ, affinity, expected):
    machine = replace(MACHINE, affinity=frozenset(range(affinity)))

    assert state(m.threads, healthy(tmp_path, environ=environ, machine=machine)) is expected


@pytest.mark.parametrize(("load", "expected"), [(0.5, State.PASS), (8.0, State.PASS), (12.0, State.WARN), (None, None)])
def test_load_of_other_programs(tmp_path, load, expected):
    assert state(m.load, on(tmp_path, load_1_min=load)) is expected


@pytest.mark.parametrize(
    ("governor", "driver", "expected"),
    [
        ("performance", "acpi-cpufreq", State.PASS),
        ("powersave", "acpi-cpufreq", State.WARN),
        ("powersave", "intel_pstate", State.PASS),
        ("powersave", "amd-pstate-epp", State.PASS),
    ],
)
def test_powersave_means_slow_with_some_drivers_only(tmp_path, governor, driver, expected):
    files = tree(tmp_path, {f"{CPUFREQ}/scaling_governor": governor, f"{CPUFREQ}/scaling_driver": driver})

    assert state(m.governor, healthy(tmp_path, files=files)) is expected


@pytest.mark.parametrize(("online", "expected"), [("1", State.PASS), ("0", State.WARN)])
def test_a_laptop_on_its_battery_is_told(tmp_path, online, expected):
    folder = "/sys/class/power_supply"
    files = tree(
        tmp_path, {f"{folder}/AC/type": "Mains", f"{folder}/AC/online": online, f"{folder}/BAT0/type": "Battery"}
    )

    assert state(m.battery, healthy(tmp_path, files=files)) is expected


def test_little_free_ram_is_told(tmp_path):
    assert state(m.free_ram, on(tmp_path, ram_available_bytes=3 * GIB)) is State.WARN  # of 32: less than a tenth
    assert state(m.free_ram, on(tmp_path, ram_available_bytes=4 * GIB)) is State.PASS
    assert state(m.free_ram, on(tmp_path, ram_bytes=None)) is State.CANNOT_TELL


def test_memory_on_the_disk_is_told(tmp_path):
    assert state(m.swap, on(tmp_path, swap_bytes=8 * GIB, swap_used_bytes=4 * GIB)) is State.WARN
    assert state(m.swap, on(tmp_path, swap_bytes=8 * GIB, swap_used_bytes=GIB)) is State.PASS  # 3 % of the RAM
    assert state(m.swap, on(tmp_path, swap_bytes=0, swap_used_bytes=0)) is None


def test_few_open_files_are_told(tmp_path):
    assert state(m.open_files, on(tmp_path, n_open_files=256)) is State.WARN
    assert state(m.open_files, on(tmp_path, n_open_files=1024)) is State.PASS
    assert state(m.open_files, on(tmp_path, n_open_files=None)) is None


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("Linux version 5.15.90.1-microsoft-standard-WSL2", State.PASS),
        ("Linux version 4.4.0-19041-Microsoft", State.FAIL),
        ("Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)", None),
    ],
)
def test_the_first_wsl_has_no_gpu(tmp_path, version, expected):
    assert state(m.wsl, healthy(tmp_path, files=tree(tmp_path, {"/proc/version": version}))) is expected


# --- containers -----------------------------------------------------------------------------------------------------


def shm(root, total, free, **files):
    spaces = {"/dev/shm": Space(total, free)}
    return healthy(root, files=replace(tree(root, files), spaces=spaces))


@pytest.mark.parametrize(
    ("total", "free", "expected"),
    [
        (64 * 2**20, 64 * 2**20, State.FAIL),
        (512 * 2**20, 512 * 2**20, State.WARN),
        (16 * GIB, 16 * GIB, State.PASS),
        (16 * GIB, 100 * 2**20, State.WARN),
    ],
)
def test_the_size_of_shared_memory(tmp_path, total, free, expected):
    assert state(c.shared_memory, shm(tmp_path, total, free)) is expected


def test_the_remedy_for_shared_memory_knows_where_it_is(tmp_path):
    outside = found(c.shared_memory, shm(tmp_path, 64 * 2**20, 0))
    inside = found(c.shared_memory, shm(tmp_path, 64 * 2**20, 0, **{"/.dockerenv": ""}))

    assert "remount" in outside.remedy
    assert "--shm-size" in inside.remedy


def test_a_container_started_without_the_card_fails(tmp_path):
    files = nvidia_card(tmp_path, **{"/.dockerenv": "", "/dev/null": ""})
    finding = found(c.card_is_handed_in, healthy(tmp_path, files=files, driver=NO_DRIVER))

    assert finding.state is State.FAIL
    assert "--gpus all" in finding.remedy


def test_a_container_with_the_cards_files_passes(tmp_path):
    files = nvidia_card(tmp_path, **{"/.dockerenv": "", "/dev/nvidia0": "", "/dev/nvidiactl": ""})

    assert state(c.card_is_handed_in, healthy(tmp_path, files=files, driver=NO_DRIVER)) is State.PASS


def test_outside_a_container_nothing_is_handed_in(tmp_path):
    assert c.card_is_handed_in(healthy(tmp_path, files=nvidia_card(tmp_path))) is None


def test_less_cpu_time_than_cpus_is_told_with_what_to_set(tmp_path):
    files = tree(tmp_path, {"/sys/fs/cgroup/cpu.max": "250000 100000"})
    finding = found(c.cpu_time, healthy(tmp_path, files=files))

    assert "2.5" in finding.words
    assert "num_workers=1 and OMP_NUM_THREADS=2" in finding.remedy


@pytest.mark.parametrize(
    ("used", "droppable", "expected"),
    [(int(3.8 * GIB), 0, State.WARN), (int(3.8 * GIB), GIB, State.PASS), (GIB, 0, State.PASS)],
)
def test_pages_of_files_do_not_fill_the_granted_memory(tmp_path, used, droppable, expected):
    folder = "/sys/fs/cgroup"
    files = tree(
        tmp_path,
        {
            f"{folder}/memory.max": str(4 * GIB),
            f"{folder}/memory.current": str(used),
            f"{folder}/memory.stat": f"anon 1\ninactive_file {droppable}",
        },
    )

    assert state(c.memory, healthy(tmp_path, files=files)) is expected


# --- control groups -------------------------------------------------------------------------------------------------


def test_the_tightest_of_nested_limits_holds(tmp_path):
    files = tree(
        tmp_path,
        {
            "/proc/self/cgroup": "0::/a/b",
            "/sys/fs/cgroup/a/b/cpu.max": "max 100000",
            "/sys/fs/cgroup/a/cpu.max": "150000 100000",
            "/sys/fs/cgroup/cpu.max": "400000 100000",
        },
    )

    assert cpu_quota(files) == (1.5, "/sys/fs/cgroup/a/cpu.max")


def test_the_first_version_is_read_too(tmp_path):
    files = tree(
        tmp_path,
        {
            "/proc/self/cgroup": "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/",
            "/sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us": "200000",
            "/sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us": "100000",
            "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": str(GIB),
            "/sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": "100",
        },
    )

    assert cpu_quota(files) == (2.0, "/sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us")
    assert memory_limit(files) == (GIB, 100, "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes")


def test_no_limit_is_none_in_both_versions(tmp_path):
    files = tree(
        tmp_path,
        {
            "/proc/self/cgroup": "5:cpu:/\n4:memory:/\n0::/",
            "/sys/fs/cgroup/cpu.max": "max 100000",
            "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            "/sys/fs/cgroup/memory.max": "max",
        },
    )

    assert cpu_quota(files) is None
    assert memory_limit(files) is None


def test_files_that_are_missing_are_none(tmp_path):
    files = Files(tmp_path)

    assert (files.read("/x"), files.number("/x"), files.names("/x"), files.link("/x")) == (None, None, (), None)


@pytest.mark.parametrize(("text", "cpus"), [("0-1,4", {0, 1, 4}), ("7", {7}), ("x-2", set()), ("", set())])
def test_lists_of_cpus(text, cpus):
    assert cpu_list(text) == cpus
