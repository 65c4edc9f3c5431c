"""What a run was asked to do, and the folder through which parent and child talk.

The folder holds: `request.json` (parent to child, once), `progress.json` (child to parent, replaced at most five
times a second), and at the end `result.json` with `tape.gz` (simulated) or `trace.json` (measured) beside it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpututor.results import write_at_once

REQUEST, PROGRESS, RESULT, TAPE, TRACE = "request.json", "progress.json", "result.json", "tape.gz", "trace.json"
DEFAULT_SKIP = 1  # the first step also holds the set-up: the model's way to the card, the first batch


@dataclass(frozen=True, slots=True)
class Request:
    """A script (or module) with its arguments, where to run it and when to stop.

    `n_steps` steps are kept after `skip` that are not; `seconds` are this machine's. `here` means the real GPU.
    `clock` is "virtual" (work on the host beside the ops costs nothing) or "paced". `added_path` is the entry of the
    module search path by which the child found gpututor and that the script shall not see.
    """

    target: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False
    machine: str = ""
    here: bool = False
    numerics: bool = True
    n_steps: int | None = None
    skip: int = DEFAULT_SKIP
    seconds: float | None = None
    clock: str = "virtual"
    added_path: str | None = None
    visible_gpus: str | None = None

    @property
    def name(self) -> str:
        """What the run is called in a report."""
        return f"-m {self.target}" if self.is_module else Path(self.target).name


def write(folder: Path, request: Request) -> None:
    """Leave the request for the child.

    Raises:
        OSError: the disk is full or read-only.
    """
    write_at_once(folder / REQUEST, json.dumps(asdict(request)))


def read(folder: Path) -> Request:
    """The request that `write` left."""
    told = json.loads((folder / REQUEST).read_text("utf-8"))
    return Request(**{**told, "arguments": tuple(told["arguments"])})


def read_if_there(path: Path) -> dict[str, Any] | None:
    """What a JSON file holds, or None while it isn't written."""
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return told
