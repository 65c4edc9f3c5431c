"""Is the card healthy, and who shares it; each on an A100 with one reading changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpututor.doctor import State
from gpututor.doctor import card_checks as c
from gpututor.doctor import card_use_checks as u
from gpututor.doctor.facts import Process
from tests.doctor.places import A100, DRIVER, GIB, MACHINE, NO_DRIVER, found, healthy, state, tree, with_gpu

BUSY = 0.9
# Bits of nvmlClocksEventReasons in nvml.h.
IDLE, APPLICATION, POWER_CAP, HARDWARE, SYNC_BOOST, THERMAL, HW_THERMAL, BRAKE, UNKNOWN = (
    0x1,
    0x2,
    0x4,
    0x8,
    0x10,
    0x20,
    0x40,
    0x80,
    0x400,
)


@pytest.mark.parametrize(
    ("mask", "share", "expected"),
    [
        (IDLE, 0.0, State.CANNOT_TELL),
        (0, BUSY, State.PASS),
        (POWER_CAP, BUSY, State.PASS),  # a busy card at its limit is healthy
        (UNKNOWN, BUSY, State.PASS),
        (APPLICATION, BUSY, State.WARN),
        (SYNC_BOOST, BUSY, State.WARN),
        (THERMAL, BUSY, State.WARN),
        (HARDWARE, BUSY, State.FAIL),
        (HARDWARE | THERMAL, BUSY, State.FAIL),
        (HW_THERMAL | HARDWARE, BUSY, State.FAIL),
        (BRAKE | HARDWARE, 0.0, State.FAIL),
    ],
)
def test_what_holds_the_clocks_is_told_by_kind(tmp_path, mask, share, expected):
    facts = with_gpu(tmp_path, clock_reasons=(mask,) * 5, kernel_time_share=share)

    assert state(c.clocks, facts) is expected


def test_the_special_reason_is_named_before_the_general_one(tmp_path):
    facts = with_gpu(tmp_path, clock_reasons=(BRAKE | HARDWARE,) * 5, kernel_time_share=BUSY)

    assert "power supply" in found(c.clocks, facts).words


def test_a_slowdown_that_flashes_once_is_not_believed(tmp_path):
    facts = with_gpu(tmp_path, clock_reasons=(0, 0, HARDWARE, 0, 0), kernel_time_share=BUSY)
    finding = found(c.clocks, facts)

    assert finding.state is State.PASS
    assert "hardware slowdown in 1 of 5" in finding.evidence[0]


def test_a_busy_card_at_half_its_clock_without_a_reason_is_told(tmp_path):
    facts = with_gpu(tmp_path, clock_reasons=(0,) * 5, kernel_time_share=BUSY, sm_clock_hz=705e6)
    finding = found(c.clocks, facts)

    assert finding.state is State.WARN
    assert "50" in finding.words


@pytest.mark.parametrize(
    ("check", "field"),
    [
        (c.clocks, "clock_reasons"),
        (c.power_limit, "power_limit_w"),
        (c.persistence, "persistence"),
        (c.link, "pcie_width"),
        (u.free_memory, "memory_used_bytes"),
    ],
)
def test_a_missing_reading_is_cannot_tell_with_its_reason(tmp_path, check, field):
    finding = found(
        check, with_gpu(tmp_path, **{field: None}, reasons={field: "NVMLError_NotSupported: Not Supported"})
    )

    assert finding.state is State.CANNOT_TELL
    assert "Not Supported" in " ".join(finding.evidence)


def test_without_cards_no_check_of_cards_applies(tmp_path):
    facts = healthy(tmp_path, driver=NO_DRIVER)

    assert {check(facts) for check in (*c.CHECKS, *u.CHECKS)} == {None}


def test_a_lowered_power_limit_is_told_with_the_command_that_lifts_it(tmp_path):
    finding = found(c.power_limit, with_gpu(tmp_path, power_limit_w=250.0))

    assert finding.state is State.WARN
    assert finding.remedy.endswith("nvidia-smi -i 0 -pl 400")


def test_a_watt_of_rounding_is_no_lowered_limit(tmp_path):
    assert state(c.power_limit, with_gpu(tmp_path, power_limit_w=399.0)) is State.PASS


def test_persistence_off_is_told_on_linux_only(tmp_path):
    facts = with_gpu(tmp_path, persistence=False)
    windows = replace(facts, machine=replace(MACHINE, platform="win32"))

    assert state(c.persistence, facts) is State.WARN
    assert state(c.persistence, windows) is None


def test_a_card_with_a_display_keeps_its_driver_loaded(tmp_path):
    assert state(c.persistence, with_gpu(tmp_path, persistence=False, display=True)) is State.PASS


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, State.PASS),
        ({"n_uncorrected_errors": 2}, State.FAIL),
        ({"remapping": (1, 0, 1, 0)}, State.WARN),
        ({"remapping": (8, 1, 0, 1)}, State.FAIL),
        ({"remapping": None}, State.PASS),
        ({"n_uncorrected_errors": None}, State.CANNOT_TELL),
        ({"ecc": False}, None),
        ({"ecc": None}, None),
    ],
)
def test_memory_errors(tmp_path, changed, expected):
    assert state(c.memory_errors, with_gpu(tmp_path, **changed)) is expected


@pytest.mark.parametrize(
    ("gen", "width", "share", "expected"),
    [
        (4, 16, BUSY, State.PASS),
        (4, 16, 0.0, State.PASS),
        (1, 16, 0.0, State.CANNOT_TELL),  # a resting link slows down
        (1, 16, None, State.CANNOT_TELL),
        (1, 16, BUSY, State.WARN),
        (4, 8, BUSY, State.WARN),
    ],
)
def test_a_slow_link_counts_under_load_only(tmp_path, gen, width, share, expected):
    facts = with_gpu(tmp_path, pcie_gen=gen, pcie_width=width, kernel_time_share=share)

    assert state(c.link, facts) is expected


def test_a_slot_with_fewer_lanes_than_the_card_is_told_at_rest_too(tmp_path):
    facts = with_gpu(tmp_path, pcie_width=4, pcie_width_max=4)  # our table: 16 lanes

    assert "4 lanes, the card has 16" in found(c.link, facts).words


def test_of_two_cards_the_worse_one_is_told(tmp_path):
    second = replace(A100, index=1, power_limit_w=200.0)
    finding = found(c.power_limit, healthy(tmp_path, driver=replace(DRIVER, gpus=(A100, second))))

    assert finding.state is State.WARN
    assert "GPU 1" in finding.evidence[0]
    assert len(finding.evidence) == 1


# --- who uses it ----------------------------------------------------------------------------------------------------

OTHER = Process(4711, 30 * GIB, "python3")


def test_another_program_is_named_with_its_memory(tmp_path):
    facts = with_gpu(tmp_path, processes=(OTHER,), memory_used_bytes=30 * GIB, kernel_time_share=BUSY)
    finding = found(u.others, facts)

    assert finding.state is State.WARN
    assert "4711, python3, 30\u00a0GiB" in finding.evidence[1]


def test_memory_taken_by_somebody_unseen_is_told(tmp_path):
    """In a container the list of programs is empty."""
    finding = found(u.others, with_gpu(tmp_path, memory_used_bytes=30 * GIB))

    assert finding.state is State.WARN
    assert "30" in finding.evidence[0]


def test_a_desktop_is_nobody(tmp_path):
    desktop = Process(900, 300 * 2**20, "Xorg")
    facts = with_gpu(tmp_path, processes=(desktop,), memory_used_bytes=400 * 2**20, kernel_time_share=0.02)

    assert state(u.others, facts) is State.PASS


def test_the_first_utilization_of_a_driver_just_loaded_is_not_believed(tmp_path):
    assert state(u.others, with_gpu(tmp_path, persistence=False, kernel_time_share=BUSY)) is State.CANNOT_TELL


def test_a_full_card_is_told(tmp_path):
    assert state(u.free_memory, with_gpu(tmp_path, memory_used_bytes=38 * GIB)) is State.WARN


def test_a_full_card_under_windows_spills(tmp_path):
    facts = with_gpu(tmp_path, memory_used_bytes=39 * GIB)
    windows = replace(facts, machine=replace(MACHINE, platform="win32"))
    wsl = replace(facts, files=tree(tmp_path, {"/proc/version": "Linux 5.15 microsoft-standard-WSL2"}))

    assert state(u.spill, windows) is State.WARN
    assert state(u.spill, wsl) is State.WARN


def test_on_linux_nothing_spills(tmp_path):
    assert state(u.spill, with_gpu(tmp_path, memory_used_bytes=39 * GIB)) is None


@pytest.mark.parametrize(
    ("mig", "n", "expected"),
    [(False, None, State.PASS), (True, 2, State.WARN), (True, 0, State.FAIL), (None, None, None)],
)
def test_slices_of_a_card(tmp_path, mig, n, expected):
    assert state(u.slices, with_gpu(tmp_path, mig=mig, n_mig_slices=n)) is expected


@pytest.mark.parametrize(
    ("mode", "processes", "expected"),
    [
        (0, (), State.PASS),
        (2, (), State.FAIL),
        (3, (), State.PASS),
        (3, (OTHER,), State.WARN),
        (None, (), None),
    ],
)
def test_the_compute_mode(tmp_path, mode, processes, expected):
    assert state(u.compute_mode, with_gpu(tmp_path, compute_mode=mode, processes=processes)) is expected
