"""Machines that public threads tell of: the readings that stand there, and what the doctor's check makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import marimo as mo

from gpututor.doctor import Finding
from gpututor.doctor.facts import Driver, Facts, Gpu, Machine, Torch, TorchGpu
from gpututor.doctor.planted import GIB, MIB, SHM, MadeUpFiles
from gpututor.doctor.readers import Space
from gpututor.doctor.registry import CHECKS
from gpututor.page.figures import figure
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.parts import escape


@dataclass(frozen=True, slots=True)
class Told:
    """What a thread tells: which, the reading in words, the same as facts of the doctor, and the check it is for.

    Whatever the thread doesn't tell is left out of the facts, so no other check can answer.
    """

    thread: str
    reading: str
    facts: Facts
    check: str

    @property
    def finding(self) -> Finding:
        """What the check finds."""
        finding = next(one for one in CHECKS if one.id == self.check)(self.facts)
        assert finding is not None
        return finding


def _facts(*gpus: Gpu, torch: Torch | None = None, shm: Space | None = None, platform: str = "linux") -> Facts:
    in_container = {} if shm is None else {"/.dockerenv": ""}
    files = MadeUpFiles(spaces={} if shm is None else {SHM: shm}, texts=in_container)
    return Facts(
        files, {}, Machine(platform=platform), data=Path("data"), driver=Driver(gpus=gpus), torch=torch or Torch()
    )


_TWO = (Gpu(0, "the slower card", "GPU-a"), Gpu(1, "the faster card", "GPU-b"))
TOLD: Sequence[Told] = (
    Told(
        "zyddnys/manga-image-translator#210",
        "a torch for the processor, and an NVIDIA GPU",
        _facts(Gpu(0), torch=Torch("2.0.1+cpu", available=False)),
        "torch.build",
    ),
    Told(
        "NVIDIA/DIGITS#1358",
        "two cards; CUDA counts the faster one first",
        _facts(
            *_TWO,
            torch=Torch(
                "2.0.1",
                cuda="11.8",
                available=True,
                gpus=(TorchGpu(0, "the faster card", uuid="b"), TorchGpu(1, "the slower card", uuid="a")),
            ),
        ),
        "visible.order",
    ),
    Told(
        "janhq/jan#183",
        "RTX 4090 on a riser: 2.5 GT/s of 16, all 16 lanes; whether it worked isn't told",
        _facts(
            Gpu(0, "NVIDIA GeForce RTX 4090", pcie_gen=1, pcie_gen_max=4, pcie_width=16, pcie_width_max=16),
        ),
        "card.link",
    ),
    Told(
        "aws/sagemaker-pytorch-training-toolkit#117",
        "64 MB of shared memory in a container",
        _facts(shm=Space(64 * MIB, 64 * MIB)),
        "container.shm",
    ),
    Told(
        "pytorch/pytorch#1355",
        "1 GB of shared memory, 883 MB in use after workers were killed",
        _facts(shm=Space(GIB, 142 * MIB)),
        "container.shm",
    ),
    Told(
        "iperov/DeepFaceLab#5445",
        "Windows: the card is used at 80 %, Task Manager shows 5 %",
        _facts(Gpu(0, kernel_time_share=0.8), platform="win32"),
        "card.others",
    ),
)


def readings() -> mo.Html:
    """Each thread's reading beside the doctor's word."""
    rows: list[Row] = [(one.thread, (one.reading, f"{one.finding.state.value}: {one.finding.words}")) for one in TOLD]
    titles = ("They read", "The doctor says")
    threads = escape(f"{len(rows)} public threads")
    return figure(
        "Other people's machines, and the doctor's word",
        f'<span class="gt-tag gt-recorded">Recorded</span> in {threads}; each reading goes through one check',
        table("The thread", titles, rows),
        wide=True,
    )
