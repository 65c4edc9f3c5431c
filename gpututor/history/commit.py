"""Which commit a script belongs to, read from the files of its git repository; no program is started."""

from __future__ import annotations

import re
from pathlib import Path

HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
LARGEST_BYTES = 16 * 2**20  # our limit: a packed list of refs of a large repository has a few megabytes


def commit_of(path: Path) -> str | None:
    """The commit that is checked out in the repository around `path`, or None where there is none to be read.

    Changes that aren't committed are not seen.
    """
    try:
        folder = path.resolve()
        for each in (folder, *folder.parents):
            if (each / ".git").exists():
                return _head(each / ".git")
    except (OSError, ValueError, RuntimeError):
        return None
    return None


def _head(git: Path) -> str | None:
    if git.is_file():  # a worktree or a submodule: "gitdir: …"
        git = (git.parent / _text(git).removeprefix("gitdir:").strip()).resolve()
    head = _text(git / "HEAD").strip()
    if not head.startswith("ref:"):
        return head if HASH.fullmatch(head) else None
    name = head.removeprefix("ref:").strip()
    shared = git / _text(git / "commondir").strip() if (git / "commondir").exists() else git
    for folder in (git, shared):
        if (folder / name).is_file():
            found = _text(folder / name).strip()
            return found if HASH.fullmatch(found) else None
    for line in _text(shared / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref.strip() == name and HASH.fullmatch(commit):
            return commit
    return None


def _text(path: Path) -> str:
    if path.stat().st_size > LARGEST_BYTES:
        raise OSError(f"{path} is too large to be read for a commit")
    return path.read_text(encoding="utf-8", errors="replace")
