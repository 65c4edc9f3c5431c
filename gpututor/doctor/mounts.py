"""Which file system holds a folder, and which disk that lies on. Linux only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpututor.doctor.readers import Files


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of /proc/self/mountinfo: where it is mounted, its kind, what is mounted, and the device's number."""

    point: str
    kind: str
    source: str
    device: str


def mount_of(files: Files, folder: Path) -> Mount | None:
    """The mount that holds `folder`; None where the system has no such list.

    Source: the kernel's documentation of /proc/PID/mountinfo.
    """
    wanted = PurePosixPath(folder.as_posix())
    best = None
    for line in (files.read("/proc/self/mountinfo") or "").splitlines():
        mount = _mount(line)
        if mount is None or not wanted.is_relative_to(mount.point):
            continue
        if best is None or len(mount.point) >= len(best.point):  # the later one lies on top
            best = mount
    return best


def _mount(line: str) -> Mount | None:
    before, separator, after = line.partition(" - ")
    left, right = before.split(), after.split()
    if not separator or len(left) < 5 or len(right) < 2:
        return None
    return Mount(_unescaped(left[4]), right[0], _unescaped(right[1]), left[2])


def _unescaped(text: str) -> str:
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, sign)
    return text


def turns(files: Files, mount: Mount) -> bool | None:
    """Whether the disk says that it turns; None where it doesn't say, or is virtual and its word worth nothing."""
    name = PurePosixPath(mount.source).name if mount.source.startswith("/dev/") else ""
    if name.startswith(("vd", "xvd")):  # virtio and Xen
        return None
    folders = [f"/sys/dev/block/{mount.device}", *([f"/sys/class/block/{name}"] if name else [])]
    for folder in folders:
        for place in (f"{folder}/queue/rotational", f"{folder}/../queue/rotational"):  # a partition has its disk above
            found = files.number(place)
            if found is not None:
                return found == 1
    return None
