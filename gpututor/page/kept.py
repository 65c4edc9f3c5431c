"""What a finished run left behind for its page: its tapes, if they can still be read, or the sentence why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import marimo as mo

from gpututor.errors import GpututorError
from gpututor.page.parts import trouble_line
from gpututor.page.run import ghost
from gpututor.page.runner import Phase
from gpututor.replay import read_tape
from gpututor.results import StoredResult


@dataclass(frozen=True, slots=True)
class Kept:
    """The files of a run's tapes by name, all readable. Without any, `trouble` says why if something went wrong.

    `result` is the run they are from; None where there are none.
    """

    tapes: Mapping[str, Path] = field(default_factory=dict)
    trouble: str = ""
    result: StoredResult | None = None

    @property
    def data(self) -> Mapping[str, Any]:
        """What the experiment handed back; empty without a run."""
        return self.result.data if self.result is not None else {}

    def has(self, *names: str) -> bool:
        """Whether the run left all of these tapes."""
        return all(name in self.tapes for name in names)

    def instead(self, waiting: str) -> mo.Html:
        """What stands in the place of the results: `waiting` before a run, else what went wrong."""
        return trouble_line(self.trouble) or ghost(waiting)


def kept_tapes(result: StoredResult | None, phase: Phase) -> Kept:
    """The tapes of a page's finished run.

    An experiment names them in its data, one as {"tape": file} or several as {"tapes": {name: file}}; none while
    nothing has run, while something runs, and when a run was stopped before its first step.
    """
    if result is None or result.folder is None or phase not in ("done", "stopped"):
        return Kept()
    data = result.data if isinstance(result.data, dict) else {}
    names = data.get("tapes") or ({"tape": data["tape"]} if data.get("tape") else {})
    tapes = {name: result.folder / file for name, file in names.items()}
    try:
        for path in tapes.values():
            read_tape(path)
    except GpututorError as error:
        return Kept(trouble=f"What this run left can't be shown: {error}.")
    return Kept(tapes, result=result) if tapes else Kept()
