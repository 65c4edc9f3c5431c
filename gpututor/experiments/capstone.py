"""Lesson 19: the mystery job as it is, and as the reader raised it, trained until it translates as well.

Both train for real on the simulated card. After some hundred sentences the weights are looked at beside the clock: held
against sentences that no step sees. The attempt ends when it is as good as the mystery job was, or when it has seen so
many sentences that it is given up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Variant
from gpututor.jobs.corpus import Pair, draw
from gpututor.jobs.held_out import Weights, loss_of
from gpututor.jobs.levers import Bits, Choices, Launch
from gpututor.jobs.numbering import Rows, numbered, rows
from gpututor.paths import data_dir
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    import torch

    from gpututor.experiments.raised import Raised
    from gpututor.jobs.seq2seq import Seq2SeqJob
    from gpututor.model.tape import Entry
    from gpututor.simgpu.session import Session

WHAT = "lesson 19, the mystery job raised"
MYSTERY, YOURS, YOUR_START = "mystery", "yours", "yours-start"
N_HELD_OUT = 128
N_MYSTERY = 24  # of its sentences, for its step; its whole training is kept in data/capstone
LOOK_EVERY = 256  # sentences
N_KEPT = 6
ASKED = Choices(batch=64)
"""What the lesson asks about, and what its first run trains."""


def folder() -> Any:
    """Where the mystery job's whole training and our own solution are kept."""
    return data_dir() / "capstone"


@lru_cache(maxsize=1)
def mystery() -> Mapping[str, Any]:
    """The mystery job's whole training, as `tools/capstone.py` noted it.

    Gives "target", "n_sentences", "held_out", which are pairs of sentences and loss, and its first "losses".
    """
    told: Mapping[str, Any] = json.loads((folder() / "mystery.json").read_text("ascii"))
    return told


@dataclass(frozen=True, slots=True)
class Sentences:
    """What is trained on, and what is only looked at, with one table of words."""

    pairs: tuple[Pair, ...]
    known: tuple[Pair, ...]
    trained: Rows
    held_out: Rows


@lru_cache(maxsize=1)
def sentences(seed: int = 0) -> Sentences:
    """The asker's sentences, of which the last are held out."""
    pairs = draw(seed)
    french, english = numbered(p.french for p in pairs), numbered(p.english for p in pairs)
    known, unseen = pairs[:-N_HELD_OUT], pairs[-N_HELD_OUT:]
    return Sentences(pairs, known, rows(known, french, english), rows(unseen, french, english))


def weights_of(job: Raised | Seq2SeqJob) -> Weights:
    """The weights as numbers, read beside the clock."""
    found = {}
    for half, module in (("encoder", job.encoder), ("decoder", job.decoder)):
        for name, each in module.named_parameters():
            host = getattr(each, "host", None)  # the simulated card's numbers, without a copy on its clock
            found[f"{half}.{name}"] = (each.detach().cpu() if host is None else host).numpy()
    return found


def the_mystery_job(device: Any, seed: int = 0) -> Seq2SeqJob:
    """Lesson 2's job, which never trains on what is held out."""
    from gpututor.jobs.seq2seq import Seq2SeqJob

    job = Seq2SeqJob(device, seed, pairs=sentences(seed).pairs)
    job.pairs = sentences(seed).known
    return job


# --- the run ---------------------------------------------------------------------------------------------------------


def run(
    progress: Progress,
    *,
    choices: Mapping[str, Any] | None = None,
    machine: str = sweeps.MACHINE,
    n_mystery: int = N_MYSTERY,
    target: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Train some sentences of the mystery job, and then the attempt until it is there or given up.

    Gives "points" of both (see `_point`), "tapes", "target", "machine", "what" and "torch". The tapes are of steps: the
    mystery job's, the attempt's last usual ones, and under "yours-start" those that only its beginning has.

    Raises:
        ExperimentError: there is no such choice.
    """
    import torch

    chosen = ASKED if choices is None else Choices.from_data(choices)
    wanted = float(mystery()["target"] if target is None else target)
    points: list[dict[str, Any]] = []
    tapes: dict[str, str] = {}
    data = {"what": WHAT, "machine": machine, "torch": torch.__version__, "target": wanted, "clock": "virtual"}
    data |= {"points": points, "tapes": tapes}
    n_all = n_mystery + -(-chosen.most // chosen.batch)
    first = _Attempt(progress, machine, MYSTERY, 0, n_all, data)
    points.append(first.mystery(n_mystery, seed))
    first.save(tapes)
    second = _Attempt(progress, machine, YOURS, n_mystery, n_all, data)
    points.append(second.train(chosen, wanted, seed))
    second.save(tapes)
    return data


@dataclass
class _Attempt:
    """One training on a fresh simulated machine, with what is kept of it."""

    progress: Progress
    machine: str
    key: str
    n_before: int
    n_all: int
    partial: dict[str, Any]
    usual: list[list[Entry]] = field(default_factory=list)
    start: list[Entry] = field(default_factory=list)
    n_start: int = 0

    def mystery(self, n_steps: int, seed: int) -> dict[str, Any]:
        """The mystery job's first sentences."""
        from gpututor.simgpu import simulated_gpu

        told = self._point("the mystery job", Choices(), 1)
        with simulated_gpu(self.machine, what="the mystery job") as sim:
            job = the_mystery_job("simgpu", seed)
            job.prepare(n_steps)
            for k in range(n_steps):
                self._step(sim, 1, partial(_noted, job, k, told["losses"]), usual=lambda: True, n_kept=n_steps)
                self.progress.tick(self.n_before + k + 1, self.n_all, "the mystery job")
            told |= {"n_steps": n_steps, "n_seen": n_steps, "run_ns": sim.host_ns}
        return told

    def train(self, chosen: Choices, target: float, seed: int) -> dict[str, Any]:
        """The attempt; a stopped one hands back how far it came."""
        from gpututor.simgpu import simulated_gpu

        told = self._point("yours", chosen, chosen.batch)
        told["trouble"] = chosen.clash or None
        if chosen.clash:
            return told
        import torch

        from gpututor.experiments.raised import Raised

        split = sentences(seed)
        with simulated_gpu(self.machine, what="your attempt") as sim:
            job = Raised(torch.device("simgpu"), chosen, split.trained, seed=seed)
            _wait(sim)
            began_ns = sim.host_ns
            try:
                self._until(sim, job, told, target, split.held_out)
            except Stopped:
                told["stopped"] = True
            _wait(sim)
            sim.end_run()
            told |= {"n_seen": job.n_seen, "n_start": self.n_start, "run_ns": sim.host_ns - began_ns}
            told["memory_bytes"] = sim.memory.peak_bytes
        return told

    def _until(self, sim: Session, job: Raised, told: dict[str, Any], target: float, unseen: Rows) -> None:
        """Train until the held-out loss is at the target, or so many sentences were seen."""
        looked, chosen, began_ns = 0, job.choices, sim.host_ns
        losses: list[Any] = []
        every = 1 if chosen.reading.name == "ALWAYS" else 20
        while job.n_seen < chosen.most and not told["reached"]:
            self._step(sim, chosen.batch, lambda: _trained(job, losses, every), lambda: not job.captured)
            told["n_steps"] += 1
            if job.n_seen - looked >= LOOK_EVERY or job.n_seen >= chosen.most:
                looked = job.n_seen
                loss = loss_of(weights_of(job), unseen)
                took_ns = max(sim.host_ns, *sim.player.queue.stream_ns) - began_ns  # the card may be behind
                told["curve"].append([told["n_steps"], job.n_seen, took_ns, loss])
                told |= {"held_out": loss, "reached": loss <= target}
            told["losses"] = losses
            note = f"{job.n_seen:,} sentences" + (f", held-out loss {told['held_out']:.2f}" if told["curve"] else "")
            self.progress.tick(self.n_before + told["n_steps"], self.n_all, note, self.partial)

    def _step(
        self, sim: Session, n: int, step: Callable[[], object], usual: Callable[[], bool], n_kept: int = N_KEPT
    ) -> None:
        """One step; its entries go to the tape of usual steps, of which the last are kept, or to that of the start."""
        sim.tape.entries.clear()
        sim.begin_step(n)
        step()
        entries = list(sim.tape.entries)
        if usual():
            self.usual.append(entries)
            del self.usual[:-n_kept]
        else:
            self.start += entries
            self.n_start += 1

    def _point(self, label: str, chosen: Choices, n: int) -> dict[str, Any]:
        """What the page reads of a training.

        As a sweep's points, and: its "choices", "n_steps" and "n_seen" sentences in all, "n_start" steps unlike the
        usual ones, "run_ns" on the machine that it ran on, and "curve", rows of steps, sentences, nanoseconds and
        held-out loss; whether it "reached" the target or was "stopped".
        """
        told: dict[str, Any] = {"key": self.key, "label": label, "x": None, "n_samples": n, "losses": []}
        told |= {"step_ns": None, "memory_bytes": None, "trouble": None, "held_out": None, "noted": {}}
        told |= {"choices": chosen.as_data(), "n_steps": 0, "n_seen": 0, "n_start": 0, "run_ns": 0, "curve": []}
        return told | {"reached": False, "stopped": False}

    def save(self, tapes: dict[str, str]) -> None:
        """Write what was kept into files."""
        from gpututor.model import tape_file
        from gpututor.model.tape import EndRun, Sync, Tape

        if not self.usual:  # it ended before its first usual step
            self.usual, self.start, n_steps, self.n_start = [self.start], [], self.n_start, 0
        else:
            n_steps = len(self.usual)
        last = [entry for entries in self.usual for entry in entries]
        for key, entries in ((self.key, last), (f"{self.key}-start", self.start)):
            if entries:
                tapes[key] = f"{key}.tape.gz"
                n = n_steps if key == self.key else self.n_start
                tape_file.save(
                    Tape(key, [*entries, Sync("synchronize"), EndRun()], [None] * n),
                    self.progress.results_dir / tapes[key],
                )


def _trained(job: Raised, losses: list[Any], every: int) -> None:
    """A step, and the mean loss of a word, read when it is time."""
    loss, words = job()
    losses.append(loss.item() / words if len(losses) % every == 0 else None)


def _noted(job: Seq2SeqJob, k: int, losses: list[float]) -> None:
    losses.append(job.step(k))


def _wait(sim: Session) -> None:
    from gpututor.model.tape import Sync

    sim.account(Sync("synchronize"))


# --- the reader's own machine ----------------------------------------------------------------------------------------


class _Measured:
    """An attempt as a step to be timed."""

    def __init__(self, choices: Choices, device: torch.device) -> None:
        from gpututor.experiments.raised import Raised

        self._job = Raised(device, choices, sentences().trained)

    def __call__(self, _k: int) -> Any:
        loss, words = self._job()
        return loss / words


def measure(progress: Progress, *, device: str = "cuda", choices: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Some steps of both on this computer's GPU; on a processor, which has no graphs, without graphs and fp16."""
    chosen = ASKED if choices is None else Choices.from_data(choices)
    if device == "cpu":
        chosen = replace(chosen, launch=Launch.EAGER, bits=Bits.FP32)
    variants = [
        Variant(MYSTERY, "the mystery job", lambda place: the_mystery_job(place).step, None, 1),
        Variant(YOURS, "yours", lambda place: _Measured(chosen, place), None, chosen.batch, 8, 4),
    ]
    return sweeps.measure(progress, variants, what=WHAT, device=device, n_steps=12)
