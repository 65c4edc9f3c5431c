"""Where the training data lies: file system, disk, size of the files, room for checkpoints."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from gpututor.doctor.facts import Facts
from gpututor.doctor.finding import Answer, cannot_tell, check, fails, passes, warns
from gpututor.doctor.mounts import Mount, mount_of, turns
from gpututor.doctor.words import binary, counted
from gpututor.text import percent

# Kinds of file systems as Linux names them in /proc/filesystems.
_FAR = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "drvfs", "vboxsf", "prl_fs"}
_CLUSTER = {"lustre", "ceph", "beegfs", "gpfs", "wekafs", "glusterfs", "pvfs2"}
LOOK_S, LOOK_FILES = 0.4, 2000
"""Our choice: long enough to know what the files are like, short enough not to be noticed."""
SMALL_FILE_BYTES = 2**20
"""Our choice: below a MiB a network file system spends longer on opening a file than on sending it."""
FEW_FREE_SHARE = 0.05
"""ext4 keeps 5 % for root. Source: mke2fs(8), -m."""


def is_far(mount: Mount) -> bool:
    """Whether each file is fetched from elsewhere: another computer, Windows, or a program that plays a file system."""
    return mount.kind in _FAR or mount.kind in _CLUSTER or mount.kind.startswith("fuse")


def _evidence(facts: Facts, mount: Mount) -> str:
    return f"/proc/self/mountinfo: {facts.data} lies on {mount.point}, {mount.kind} from {mount.source}"


@check("data.there", "The data folder")
def folder_is_there(facts: Facts) -> Answer | None:
    """Whether the folder can be read."""
    if not facts.data.is_dir():
        return fails(
            "there is no such folder", "name the folder that holds your training data: --data DIR", str(facts.data)
        )
    if not os.access(facts.data, os.R_OK | os.X_OK):
        return fails("you may not read it", f"ls -ld {facts.data} shows whose it is", str(facts.data))
    unnamed = ", the current one; --data names yours" if facts.data == Path.cwd() else ""
    return passes(f"{facts.data}{unnamed}", "os.access")


@check("data.file_system", "File system of the data")
def file_system(facts: Facts) -> Answer | None:
    """Whether each read goes over a network or into Windows."""
    mount = mount_of(facts.files, facts.data)
    if mount is None:
        if facts.machine.platform == "linux":
            return cannot_tell("the system doesn't list its mounts", "/proc/self/mountinfo")
        return None
    evidence = _evidence(facts, mount)
    if mount.kind in {"9p", "drvfs"} and mount.point.startswith("/mnt/"):
        return warns(
            "a drive of Windows: each file that WSL opens there is slow",
            "copy the data into WSL's own disk, such as ~/data",
            evidence,
            sources=("learn.microsoft.com, WSL, working across file systems", "MIC-DKFZ/nnUNet#2085"),
        )
    if mount.kind in _CLUSTER:
        return warns(
            f"{mount.kind}, made for few large files: reading many small ones is slow",
            "pack the data into large files (tar, Parquet, WebDataset), or copy it to the node's own disk first",
            evidence,
        )
    if is_far(mount):
        return warns(
            f"{mount.kind}: each file comes over a network or through another program",
            f"copy the data to a local disk before training: cp -r {facts.data} /local/disk/",
            evidence,
            sources=("horovod/horovod#824",),
        )
    words = {"overlay": "the container's own layer, gone with the container", "tmpfs": "in memory"}
    return passes(words.get(mount.kind, f"{mount.kind}, local"), evidence)


@check("data.disk", "Disk of the data")
def disk(facts: Facts) -> Answer | None:
    """Whether the data lies on a turning disk, on which reading in random order is slow."""
    mount = mount_of(facts.files, facts.data)
    if mount is None or is_far(mount) or mount.kind in {"tmpfs", "overlay"}:
        return None
    found = turns(facts.files, mount)
    evidence = (
        f"queue/rotational of {mount.source} (device {mount.device}): {'not told' if found is None else int(found)}"
    )
    if found is None:
        return cannot_tell("the disk is virtual, or doesn't say what it is", evidence)
    if found:
        return warns(
            "a turning disk: in random order it gives a hundred small files a second",
            "copy the data to an SSD, or pack it into large files that are read from front to back",
            evidence,
            sources=("nianticlabs/monodepth2#157",),
        )
    return passes("solid state", evidence)


@dataclass(frozen=True, slots=True)
class Look:
    """A short look into a folder: how many files were met, their bytes, and whether that was all."""

    n_files: int
    n_bytes: int
    whole: bool


def look_into(folder: Path, limit_s: float = LOOK_S, limit_files: int = LOOK_FILES) -> Look:
    """Sizes of the first files under `folder`, within a time and a number."""
    until_s, n_files, n_bytes, waiting = time.monotonic() + limit_s, 0, 0, [str(folder)]
    while waiting:
        try:
            entries = os.scandir(waiting.pop())  # one by one: a folder of a million names takes long to list
        except OSError:
            continue
        with entries:
            for entry in entries:
                if n_files >= limit_files or time.monotonic() > until_s:
                    return Look(n_files, n_bytes, whole=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif (size := _size(entry)) is not None:
                    n_files, n_bytes = n_files + 1, n_bytes + size
    return Look(n_files, n_bytes, whole=True)


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return None


@check("data.small_files", "Size of the files")
def small_files(facts: Facts) -> Answer | None:
    """Whether there are many small files where each costs a trip."""
    if not facts.data.is_dir():
        return None
    look = look_into(facts.data)
    if not look.n_files:
        return cannot_tell("no files were met", f"os.scandir from {facts.data}")
    mean = look.n_bytes / look.n_files
    which = "all" if look.whole else "the first"
    evidence = f"os.scandir from {facts.data}: {which} {look.n_files:,} files, {binary(mean)} each"
    mount = mount_of(facts.files, facts.data)
    slow = mount is not None and (is_far(mount) or bool(turns(facts.files, mount)))
    if slow and not look.whole and mean < SMALL_FILE_BYTES:
        return warns(
            f"many files of {binary(mean)}, on a file system where each one costs a trip",
            "pack them into files of 100 MB or more (tar, Parquet, WebDataset, LMDB), or copy them to a local SSD",
            evidence,
        )
    n = counted(look.n_files, "file") if look.whole else f"more than {counted(look.n_files, 'file')}"
    return passes(f"{n}, {binary(mean)} each", evidence)


@check("data.space", "Room for checkpoints")
def room(facts: Facts) -> Answer | None:
    """Whether the file system has space left."""
    space = facts.files.space(str(facts.data))
    if space is None or not space.total_bytes:
        return None
    evidence = f"os.statvfs({facts.data}): {binary(space.free_bytes)} of {binary(space.total_bytes)} free"
    if space.free_bytes < FEW_FREE_SHARE * space.total_bytes:
        return warns(
            f"only {binary(space.free_bytes)} free ({percent(space.free_bytes / space.total_bytes)})",
            f"du -xh --max-depth=1 {facts.data} | sort -h shows what takes the room",
            evidence,
        )
    return passes(f"{binary(space.free_bytes)} free", evidence)


CHECKS = (folder_is_there, file_system, disk, small_files, room)
