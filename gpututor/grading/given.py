"""The grades of one learner, read back from the results.json that grading wrote, for their certificate."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpututor.errors import GradesRefused
from gpututor.grading.grade import FORMAT, VERSION
from gpututor.grading.roster import same
from gpututor.page.certificate import Graded

MAX_BYTES = 64 * 2**20  # our choice: a class of a thousand has some 20 MB


def graded(path: Path, learner_id: str) -> Graded:
    """What the file of grades says of this learner. It is signed by nobody: whoever has it can change it.

    Raises:
        GradesRefused: it is no such file, of another version, damaged, or about a class without this learner.
    """
    told = _read(path)
    try:
        found = next((one for one in told["learners"] if same(one["id"]) == same(learner_id)), None)
        if found is not None:
            return _of(told, found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise GradesRefused(f"{path.name} is damaged; ask for it again, or grade once more") from error
    raise GradesRefused(
        f'nobody in {path.name} has the id "{learner_id[:40]}"; name the one of your class with --learner'
    )


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise GradesRefused(f"{path} can't be read ({error.strerror or error}); check its name") from error
    if len(raw) > MAX_BYTES:
        raise GradesRefused(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB; no class's grades are")
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise GradesRefused(f"{path.name} holds no grades; name the results.json that gpututor grade wrote")
    if told.get("version") != VERSION:
        raise GradesRefused(
            f"{path.name} is of version {str(told.get('version'))[:20]}, and this gpututor reads version {VERSION}"
        )
    return told


def _of(told: Mapping[str, Any], one: Mapping[str, Any]) -> Graded:
    return Graded(
        str(told["class"]["title"]),
        str(one["id"]),
        str(one["name"]),
        _number(one["points"]),
        _number(one["marks"]),
        {str(each["number"]): (_number(each["points"]), _number(each["marks"])) for each in one["exercises"]},
        str(one["handed_in_at"]) if one["handed_in_at"] else None,
        str(told["grader"]),
    )


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number
