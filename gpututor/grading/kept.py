"""Verdicts that are kept from the moment they are there: one small file each, named by what was judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpututor.results import write_at_once

FORMAT, VERSION = "gpututor-verdict", 1
FIELDS = {"state", "share", "text", "hint", "checks", "hidden", "case", "trouble"}


class Kept:
    """The verdicts below a folder. A damaged or half-written one counts as none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> dict[str, Any] | None:
        """The verdict of this name, or None before there is one."""
        try:
            told = json.loads(self._path(key).read_text("ascii"))
            if (told["format"], told["version"], told["key"]) == (FORMAT, VERSION, key):
                verdict: dict[str, Any] = told["verdict"]
                return verdict if verdict.keys() == FIELDS else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return None

    def put(self, key: str, verdict: Mapping[str, Any]) -> None:
        """Keep a verdict; it is there, whole, or not at all.

        Raises:
            OSError: the disk is full, read-only, or not ours.
        """
        told = {"format": FORMAT, "version": VERSION, "key": key, "verdict": dict(verdict)}
        write_at_once(self._path(key), json.dumps(told, sort_keys=True) + "\n")

    def drop(self, key: str) -> None:
        """Forget a verdict, so that it is judged again."""
        with suppress(FileNotFoundError):
            self._path(key).unlink()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
