"""Lesson 7: one small job on data that is in memory, and what it costs to hand out its batches in different ways.

The training is real, and so is all that the host does: Python, indexing, collating, worker processes, reading files.
Only the card is simulated, by the paced clock. Variants of one group see the same batches in the same order, so their
losses agree to the bit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.calm import simulate_calmly
from gpututor.experiments.loader_loops import N_TIMES, loops
from gpututor.experiments.sweeps import MACHINE, Step, Variant
from gpututor.lab.lock import measuring
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import nn

WHAT = "a table in memory, 256 rows a step"
BATCH, LARGE_BATCH = 256, 1024
N_FILES = 2_048  # 8 batches; writing them takes a fifth of a second
N_WARMUP = 16
KEPT_ALONE = 4
KEPT_WITH_WORKERS = 12  # two workers have up to four batches ready; a stretch must be long against that
N_FILE_STEPS = 24  # reading a file a row takes some 10 ms a step

GROUPS: dict[str, tuple[str, ...]] = {
    "workers": ("rows-0", "rows-1", "rows-2", "batch-0", "batch-1", "batch-2"),
    "by batch": ("rows-0", "batch-0", "index", "slice", "card"),
    "samplers": ("weighted-rows", "weighted-batch", "subset-rows", "subset-batch"),
    "arrays": ("arrays-tensor", "arrays-stack", "array-one"),
    "texts": ("text-loop", "text-loop-2", "text-before"),
    "files": ("files-0", "files-2", "file-one"),
}
"""Variants that are shown together; within a group, those of the same first letters see the same batches."""


def run(
    progress: Progress,
    *,
    machine: str = MACHINE,
    n_steps: int = 96,
    n_warmup: int | None = None,
    n_file_steps: int | None = None,
    n_loops: int | None = None,
) -> dict[str, Any]:
    """Train every variant on `machine`'s simulated card with this computer as its host; see `simulate_calmly`.

    Gives besides "loops", seconds of the scripts of public threads (see `loader_loops.loops`), in a whole run. Without
    numbers of their own, warming up takes at most 16 steps and a variant with files 24, and a run of fewer does each
    variant and each script once.

    Raises:
        ExperimentError: there are no steps to run.
        MachineBusy: another measurement is running on this machine.
    """
    n_file_steps = min(n_steps, N_FILE_STEPS) if n_file_steps is None else n_file_steps
    n_warmup = min(n_steps, N_WARMUP) if n_warmup is None else n_warmup
    is_long = n_steps >= N_FILE_STEPS
    if n_loops is None:
        n_loops = N_TIMES if is_long else 1
    with tempfile.TemporaryDirectory(prefix="gpututor-rows-") as folder:
        every = [*of_the_table(), *of_samplers(), *of_arrays(), *of_texts(), *of_files(Path(folder), n_file_steps)]
        data = simulate_calmly(
            progress,
            every,
            what=WHAT,
            machine=machine,
            n_steps=n_steps,
            n_kept=_kept,
            n_warmup=n_warmup,
            again=[each.key for each in of_the_table()] if is_long else (),
        )
    if len(data["points"]) == len(every) and not progress.should_stop:
        n_all = sum(len(point["losses"]) for point in data["points"])
        with measuring(WHAT):
            data["loops"] = loops(lambda name: progress.tick(n_all, n_all, f"script: {name}", data), n_loops)
    return data


def measure(progress: Progress, *, device: str = "cuda", n_steps: int = 64) -> dict[str, Any]:
    """Train the variants of the table on this computer's GPU or processor; see `sweeps.measure`.

    Raises:
        ExperimentError: there is no such device.
        MachineBusy: another measurement is running on this machine.
    """
    return sweeps.measure(progress, of_the_table(), what=WHAT, device=device, n_steps=n_steps, n_warmup=16)


# --- variants: each names a function of jobs.handing_out, and what it is called with ----------------------------------


def of_the_table() -> list[Variant]:
    """Row by row and batch by batch, with 0, 1 and 2 workers; by hand; as slices; on the card; and a larger batch."""
    return [
        *(_variant(f"rows-{n}", f"Row by row, {_workers(n)}", "row_by_row", x=n, n_workers=n) for n in (0, 1, 2)),
        *(_variant(f"batch-{n}", f"A batch at once, {_workers(n)}", "at_once", x=n, n_workers=n) for n in (0, 1, 2)),
        _variant("index", "Indexed by hand, no loader", "by_hand"),
        _variant("slice", "Shuffled once an epoch, then sliced", "sliced"),
        _variant("card", "The whole table on the card", "by_hand", on_card=True),
        _variant("rows-large", "Row by row, a larger batch", "row_by_row", n_samples=LARGE_BATCH, batch=LARGE_BATCH),
    ]


def of_samplers() -> list[Variant]:
    """Weighted drawing and a list of indices, each row by row and by the batch."""
    return [
        _variant("weighted-rows", "Weighted sampler, row by row", "weighted", by_batch=False),
        _variant("weighted-batch", "Weighted sampler, a batch at once", "weighted", by_batch=True),
        _variant("subset-rows", "Half the table as a list of indices", "half", by_batch=False),
        _variant("subset-batch", "The same half, a batch at once", "half", by_batch=True),
    ]


def of_arrays() -> list[Variant]:
    """The table as a list of small arrays, made into a batch in two ways, and as one array."""
    return [
        _variant("arrays-tensor", "A list of arrays, torch.tensor(list)", "arrays", stacked=False),
        _variant("arrays-stack", "A list of arrays, np.stack first", "arrays", stacked=True),
        _variant("array-one", "One array", "by_hand"),
    ]


def of_texts() -> list[Variant]:
    """Texts that are cut into tokens while training, with no worker and with two, and texts that were cut before."""
    return [
        _variant("text-loop", "Tokens made in the loop", "texts", text=True),
        _variant("text-loop-2", "Tokens made by two workers", "texts", x=2, text=True, n_workers=2),
        _variant("text-before", "Tokens made once, before", "tokenized", text=True),
    ]


def of_files(folder: Path, n_steps: int = N_FILE_STEPS, n_files: int = N_FILES) -> list[Variant]:
    """Each row a small file of its own, read with no worker and with two, and all rows in one file.

    The files are written into `folder` when the first of them is made.
    """
    at: dict[str, Any] = {"folder": folder, "n_files": n_files}
    return [
        _variant("files-0", "A file a row, no workers", "files", n_steps=n_steps, **at),
        _variant("files-2", "A file a row, two workers", "files", x=2, n_steps=n_steps, n_workers=2, **at),
        _variant("file-one", "One file for all rows", "one_file", n_steps=n_steps, **at),
    ]


def _kept(variant: Variant) -> int:
    """Steps of a calm stretch: without workers (`x` is their number) a step doesn't hang on the one before."""
    return KEPT_WITH_WORKERS if variant.x else KEPT_ALONE


def _workers(n: int) -> str:
    return {0: "no workers", 1: "one worker"}.get(n, "two workers")


def _variant(
    key: str,
    label: str,
    way: str,
    *,
    x: float | None = None,
    n_samples: int = BATCH,
    text: bool = False,
    n_steps: int | None = None,
    **options: Any,
) -> Variant:
    return Variant(key, label, lambda device: _steps(device, way, text, options), x, n_samples, n_steps)


def _steps(device: torch.device, way: str, text: bool, options: Mapping[str, Any]) -> Step:
    import torch

    from gpututor.jobs import handing_out, in_memory

    torch.manual_seed(in_memory.SEED)
    net: nn.Module = in_memory.TextNet() if text else in_memory.table_net()
    training = in_memory.Training(net, device, rate=0.5 if text else 0.05)
    source = in_memory.endless(getattr(handing_out, way)(device, **options))
    return lambda k: training.step(*next(source))
