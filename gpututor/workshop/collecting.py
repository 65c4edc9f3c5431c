"""Every learner's answers as a file to grade, straight from the server's state."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpututor.errors import GpututorError, NothingToSubmit, SubmissionRefused
from gpututor.exercises import submission
from gpututor.store import Store, file_key
from gpututor.workshop.keys import Holder


@dataclass(frozen=True, slots=True)
class Collected:
    """What became of one learner's answers: the file and how many, or None and the sentence why."""

    id: str
    name: str
    file: Path | None
    n_answers: int
    why: str = ""


def collect(state: Path, learners: Iterable[Holder], out: Path) -> list[Collected]:
    """Write one submission a learner into the folder `out`, in the place of older ones.

    Raises:
        OSError: the folder can't be made.
    """
    out.mkdir(parents=True, exist_ok=True)
    os.environ["GPUTUTOR_HOME"] = str(state)
    return [_collected(holder, out) for holder in learners]


def _collected(holder: Holder, out: Path) -> Collected:
    file = out / f"{file_key(holder.id)}.json"
    store = Store(holder.id)
    if store.trouble:
        return Collected(holder.id, holder.name, None, 0, store.trouble)
    try:
        found = submission.collect(store, holder.id, holder.name)
        if file.exists():
            submission.read(file)  # anything else than a submission stays
        submission.save(found, file)
    except NothingToSubmit as nothing:
        return Collected(holder.id, holder.name, None, 0, str(nothing))
    except SubmissionRefused as refused:
        return Collected(holder.id, holder.name, None, 0, f"{file} is left alone: {refused}")
    except (OSError, GpututorError) as error:
        return Collected(holder.id, holder.name, None, 0, f"{file} can't be written ({error})")
    return Collected(holder.id, holder.name, file, len(found.answers))
