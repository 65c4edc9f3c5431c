"""Lesson 17: four jobs, each run once on a simulated card, and the same work on this computer's processor.

Their tapes are priced on every machine that is known, healthy and with something wrong. What a processor takes is
timed for real: it is where a job ends up whose torch, model or batch isn't where its owner thinks.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.feeds import usable_cores
from gpututor.experiments.preparing import Part
from gpututor.experiments.sweeps import Step, Variant
from gpututor.own_machine import cpu_name
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    import torch
    from torch import Tensor

PHOTOS, TEXTS, SENTENCES, POLICY = JOBS = ("photos", "texts", "sentences", "policy")
"""Keys of the jobs: much arithmetic, much in fp16, one sentence a step, and a network that is tiny."""
N_PHOTOS, N_PHOTOS_HERE = 64, 2  # a processor takes as long for each picture, however many there are
N_TEXTS = 4  # of 1,024 words
N_SENTENCES, N_POLICY = 24, 400
N_DECODED = 12
RUN_ON = "H100-SXM"  # its memory holds all of it; the page prices what was done on any other card
WHAT = "lesson 17, the machine itself"


def photos(n: int, device: torch.device) -> Step:
    """A training step of ResNet-50 on `n` pictures that come from pinned memory of the host, with SGD."""
    import torch
    from torch import nn

    from gpututor.workloads.vision.resnets import ResNet50

    torch.manual_seed(0)
    with device:
        net = ResNet50()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    pictures, kinds = torch.rand(n, 3, 224, 224), torch.randint(0, 1000, (n,))
    if device.type != "cpu":
        pictures, kinds = pictures.pin_memory(), kinds.pin_memory()

    def step(_k: int) -> Tensor:
        seen, wanted = (each.to(device, non_blocking=True) for each in (pictures, kinds))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(seen), wanted)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def texts(device: torch.device) -> Step:
    """A training step of GPT-2's smallest form in fp16, with AdamW."""
    from gpututor.experiments import fewer_bits
    from gpututor.experiments.formats import Format

    return fewer_bits.texts(Format.FP16, N_TEXTS, fewer_bits.PADDED_WORDS, device)


def sentences(device: torch.device) -> Step:
    """The translator of lesson 2, a sentence a step."""
    from gpututor.jobs.seq2seq import Seq2SeqJob

    return Seq2SeqJob(str(device), n_steps=N_SENTENCES + sweeps.N_WARMUP).step


def policy(device: torch.device) -> Step:
    """A network of two thin layers."""
    from gpututor.jobs.policy import PolicyJob

    return PolicyJob(device)


def variants(n_sentences: int = N_SENTENCES, n_policy: int = N_POLICY) -> list[Variant]:
    """The four jobs as the card runs them; the last two really learn."""
    by_shape: dict[str, Any] = {"numerics": False, "n_kept": 2}
    make, label = partial(photos, N_PHOTOS), f"ResNet-50, {N_PHOTOS} photographs"
    return [
        Variant(PHOTOS, label, make, None, N_PHOTOS, 2, **by_shape),
        Variant(TEXTS, f"GPT-2 in fp16, {N_TEXTS} texts", texts, None, N_TEXTS, 2, **by_shape),
        Variant(SENTENCES, "the translator, 1 sentence", sentences, None, 1, n_sentences, n_kept=8),
        Variant(POLICY, "a policy, 64 states", policy, None, 64, n_policy, n_warmup=0, n_kept=4),
    ]


def on_processor() -> list[Variant]:
    """Three of them as a processor runs them, with few enough steps that one waits for it."""
    few = f"ResNet-50, {N_PHOTOS_HERE} photographs"
    return [
        Variant(PHOTOS, few, partial(photos, N_PHOTOS_HERE), None, N_PHOTOS_HERE, 2, 1),
        Variant(SENTENCES, "the translator, 1 sentence", sentences, None, 1, 12, 2),
        Variant(POLICY, "a policy, 64 states", policy, None, 64, 200, 20),
    ]


def run(progress: Progress, *, n_sentences: int = N_SENTENCES, n_policy: int = N_POLICY) -> dict[str, Any]:
    """All of it: `sweeps.simulate`'s data, with "here" (see `_here`), "said" and "decode_ns" once that far.

    "said" is what torch says to a batch that stayed on the processor while the model is on the card, and "decode_ns"
    what one photograph takes this processor to read, cut and scale. A run stopped half-way lacks what it didn't reach.
    """
    jobs, slow = variants(n_sentences, n_policy), on_processor()
    n_jobs = sum((each.n_steps or 0) + sweeps.N_WARMUP for each in jobs)
    n_all = n_jobs + sum((each.n_steps or 0) + (each.n_warmup or 0) for each in slow)
    data = sweeps.simulate(Part(progress, 0, n_all), jobs, what=WHAT, machine=RUN_ON)
    if progress.should_stop:
        return data
    try:
        progress.tick(n_jobs, n_all, "reading photographs", data)
        data |= {"said": mixed_devices_said(), "decode_ns": decode_ns()}
        _here(progress, slow, n_jobs, n_all, data)
    except Stopped:
        pass
    return data


def _here(progress: Progress, slow: list[Variant], n_before: int, n_all: int, data: dict[str, Any]) -> None:
    """Time each on this processor; "here" gets its "cpu", "n_cores", and "ns" a sample by key.

    It is the quickest step, since other programs may take the processor now and then.
    """
    from gpututor.experiments.own_device import OnCpu

    per_sample: dict[str, float] = {}
    data["here"] = {"cpu": cpu_name(), "n_cores": usable_cores(), "ns": per_sample}
    for each in slow:
        n_steps, n_warmup = each.n_steps or 1, each.n_warmup or 0

        def tell(k: int, before: int = n_before, label: str = each.label) -> None:
            progress.tick(before + k, n_all, f"{label}, on this processor", data)

        seen = OnCpu().run(each, n_steps, n_warmup, tell)
        per_sample[each.key] = min(seen.walls_ns) / (each.n_samples or 1)
        n_before += n_steps + n_warmup


def mixed_devices_said() -> str:
    """What torch says when a model on the card is handed a batch that stayed on the processor."""
    import torch

    from gpututor.simgpu import simulated_gpu

    with simulated_gpu(RUN_ON, what="a batch left behind"):
        model = torch.nn.Linear(4, 2).to("simgpu")
        try:
            model(torch.ones(3, 4))
        except RuntimeError as error:
            return str(error).splitlines()[0].replace("simgpu", "cuda")
    return ""


def decode_ns(n: int = N_DECODED) -> float:
    """Nanoseconds that this processor takes for a photograph: read, decode, cut, scale; the quickest of `n`."""
    from gpututor.jobs.photographs import Photographs, write_photographs

    with tempfile.TemporaryDirectory() as folder:
        pictures, took_ns = Photographs(write_photographs(Path(folder), 3), n), []
        for k in range(n):
            began_ns = time.perf_counter_ns()
            pictures[k]
            took_ns.append(time.perf_counter_ns() - began_ns)
    return float(min(took_ns))


def measure(progress: Progress, *, device: str = "cuda") -> dict[str, Any]:
    """The doctor's look at this computer, then the jobs on its GPU or processor; see `sweeps.measure`.

    "doctor" holds what `gpututor doctor` prints, by number of columns: what passes, and all that follows. The checks of
    a data folder are left out, since nobody named one.

    Raises:
        ExperimentError: there is no such device.
        MachineBusy: another measurement is running on this machine.
    """
    progress.tick(0, 1, "gpututor doctor looks around")
    told = looked_at()
    measured = on_processor() if device == "cpu" else [replace(each, n_steps=20, n_warmup=4) for each in variants()]
    return {**sweeps.measure(progress, measured, what=WHAT, device=device), "doctor": told}


WIDTHS = (100, 44)
"""Columns of a terminal in a page's column, and on a phone."""


def looked_at() -> dict[str, list[str]]:
    """What the doctor prints of this computer, by number of columns."""
    from gpututor.doctor import Examination
    from gpututor.doctor.display import printed
    from gpututor.doctor.planted import CHECKED
    from gpututor.doctor.surroundings import this_machine

    examination = Examination(this_machine(Path()), checks=CHECKED)
    found = list(examination.findings())
    return {str(width): list(printed(examination, found, width)) for width in WIDTHS}
