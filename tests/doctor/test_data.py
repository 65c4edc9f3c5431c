"""Where the training data lies, told from made-up lists of mounts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpututor.doctor import State
from gpututor.doctor import data_checks as d
from gpututor.doctor.mounts import mount_of
from gpututor.doctor.readers import Files, Space
from tests.doctor.places import GIB, MACHINE, found, healthy, state, tree

ROOT = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw"


def mounted(root, *lines):
    """Files of a machine with these mounts besides the root's."""
    return tree(root, {"/proc/self/mountinfo": "\n".join((ROOT, *lines))})


def at(root, kind, point="/data", source="server:/data"):
    files = mounted(root, f"40 22 0:50 / {point} rw shared:1 - {kind} {source} rw")
    return healthy(root, files=files, data=Path(point) / "train")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("nfs4", State.WARN),
        ("cifs", State.WARN),
        ("fuse.sshfs", State.WARN),
        ("fuse.gcsfuse", State.WARN),
        ("lustre", State.WARN),
        ("ext4", State.PASS),
        ("xfs", State.PASS),
        ("overlay", State.PASS),
        ("tmpfs", State.PASS),
    ],
)
def test_a_file_system_over_a_network_is_told(tmp_path, kind, expected):
    assert state(d.file_system, at(tmp_path, kind)) is expected


def test_a_drive_of_windows_is_told_by_its_name(tmp_path):
    finding = found(d.file_system, at(tmp_path, "9p", "/mnt/c", "C:\\134"))

    assert "Windows" in finding.words


def test_the_innermost_mount_holds_the_folder(tmp_path):
    files = mounted(tmp_path, "40 22 0:50 / /data rw - nfs4 s:/d rw", "41 40 8:17 / /data/fast rw - xfs /dev/sdb1 rw")

    assert mount_of(files, Path("/data/slow")).kind == "nfs4"
    assert mount_of(files, Path("/data/fast/x")).kind == "xfs"
    assert mount_of(files, Path("/database")).kind == "ext4"


def test_a_later_mount_lies_on_top_of_an_earlier_one(tmp_path):
    files = mounted(tmp_path, "40 22 0:50 / /data rw - nfs4 s:/d rw", "41 22 0:51 / /data rw - tmpfs none rw")

    assert mount_of(files, Path("/data")).kind == "tmpfs"


def test_blanks_in_a_mounts_name_are_read(tmp_path):
    files = mounted(tmp_path, r"40 22 0:50 / /my\040data rw - nfs4 s:/d rw")

    assert mount_of(files, Path("/my data/x")).kind == "nfs4"


def test_lines_that_are_no_mounts_are_left_out(tmp_path):
    files = mounted(tmp_path, "nonsense", "40 22 0:50 / /data rw - ", "")

    assert mount_of(files, Path("/data")).kind == "ext4"


def test_without_a_list_of_mounts_nothing_is_said(tmp_path):
    facts = healthy(tmp_path)

    assert state(d.file_system, facts) is State.CANNOT_TELL
    assert state(d.file_system, replace(facts, machine=replace(MACHINE, platform="win32"))) is None


def disk(root, rotational, source="/dev/sda1"):
    files = tree(
        root,
        {
            "/proc/self/mountinfo": f"22 1 8:1 / / rw - ext4 {source} rw",
            "/sys/devices/sda/queue/rotational": rotational,
            "/sys/devices/sda/sda1/partition": "1",
        },
        {"/sys/dev/block/8:1": "../../devices/sda/sda1"},
    )
    return healthy(root, files=files)


@pytest.mark.parametrize(
    ("rotational", "source", "expected"),
    [
        ("1", "/dev/sda1", State.WARN),
        ("0", "/dev/sda1", State.PASS),
        ("1", "/dev/vda1", State.CANNOT_TELL),  # virtio says 1 whatever lies below
    ],
)
def test_a_turning_disk_is_told_by_the_disk_above_the_partition(tmp_path, rotational, source, expected):
    assert state(d.disk, disk(tmp_path, rotational, source)) is expected


def test_a_network_has_no_disk_of_ours(tmp_path):
    assert d.disk(at(tmp_path, "nfs4")) is None


def test_a_look_counts_files_and_bytes(tmp_path):
    for k in range(3):
        (tmp_path / "a" / str(k)).mkdir(parents=True)
        (tmp_path / "a" / str(k) / "x.bin").write_bytes(b"1234")

    assert d.look_into(tmp_path) == d.Look(3, 12, whole=True)


def test_a_look_ends_at_its_number_of_files(tmp_path):
    for k in range(5):
        (tmp_path / f"{k}.bin").write_bytes(b"12")

    assert d.look_into(tmp_path, limit_files=4) == d.Look(4, 8, whole=False)


def test_many_small_files_count_where_each_costs_a_trip(tmp_path, monkeypatch):
    monkeypatch.setattr(d, "look_into", lambda folder: d.Look(2000, 2000 * 100_000, whole=False))
    files = tree(tmp_path, {"/proc/self/mountinfo": f"22 1 0:9 / {tmp_path} rw - nfs4 s:/d rw"})
    slow = healthy(tmp_path, files=files)
    quick = replace(slow, files=Files(tmp_path / "elsewhere"))

    assert state(d.small_files, slow) is State.WARN
    assert state(d.small_files, quick) is State.PASS


def test_an_empty_folder_says_nothing_about_its_files(tmp_path):
    assert state(d.small_files, healthy(tmp_path)) is State.CANNOT_TELL


def test_a_full_disk_is_told(tmp_path):
    full, roomy = (
        healthy(tmp_path, files=Files(tmp_path, {str(tmp_path): Space(100 * GIB, free * GIB)})) for free in (4, 6)
    )

    assert state(d.room, full) is State.WARN
    assert state(d.room, roomy) is State.PASS


def test_a_folder_that_is_not_there_fails(tmp_path):
    assert state(d.folder_is_there, healthy(tmp_path, data=tmp_path / "no")) is State.FAIL
