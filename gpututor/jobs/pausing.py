"""A small training as tutorials have it: after every epoch it validates, saves and draws histograms, in two manners.

Everybody trains the same network on the same pictures with the same arithmetic, so the losses are the same. What
differs is how long the device waits between two epochs.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor, nn

from gpututor.jobs.shapes import KINDS, draw
from gpututor.marking import pause

SIDE, WIDTH, DEPTH, BATCH = 16, 320, 4, 64
N_STEPS = 40  # of an epoch: a small data set, as in most first projects
N_HELD_OUT = 640
SMALL, LARGE = 4, 320  # held-out pictures at once
RATE = 0.001
N_BINS, MOST = 64, 1.0  # of a histogram, and the largest weight that it shows
VALIDATION, CHECKPOINT, HISTOGRAMS, LOG = "validation", "checkpoint", "histograms", "log"
PARTS = (VALIDATION, CHECKPOINT, HISTOGRAMS)

Manner = Literal["found", "tidy"]


class Network(nn.Module):
    """A residual network of linear layers on pictures of one channel."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(SIDE * SIDE, WIDTH)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
            for _ in range(DEPTH)
        )
        self.last = nn.Linear(WIDTH, len(KINDS))

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, kinds)."""
        x = self.first(pictures.flatten(1))
        for block in self.blocks:
            x = x + block(x)
        scores: Tensor = self.last(x)
        return scores


@dataclass(frozen=True, slots=True)
class Epochs:
    """How a training spends the time between its epochs: which parts it has, in which manner, after how many steps.

    `reads` is whether it reads its loss after every step.
    """

    key: str
    label: str
    manner: Manner | None = None
    every: int = N_STEPS
    parts: tuple[str, ...] = PARTS
    reads: bool = False


class Writer:
    """Writes files from a thread of its own; `written_ns` is how long it took for them."""

    def __init__(self) -> None:
        self.written_ns = 0
        self._thread: threading.Thread | None = None

    def write(self, state: Any, path: Path) -> None:
        """Begin to write, after the file before is complete."""
        self.finish()
        self._thread = threading.Thread(target=self._write, args=(state, path))
        self._thread.start()

    def finish(self) -> None:
        """Wait until the last file is complete."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _write(self, state: Any, path: Path) -> None:
        began_ns = time.perf_counter_ns()
        torch.save(state, path)
        self.written_ns += time.perf_counter_ns() - began_ns


class PausedTraining:
    """Network, pictures and Adam on a device; a call trains once, and pauses when an epoch is over.

    Sets torch's global seed. Files are written to a folder that `done` deletes.
    """

    def __init__(self, epochs: Epochs, device: torch.device) -> None:
        torch.manual_seed(0)
        self.epochs, self.device = epochs, device
        self.net = Network().to(device)
        self.adam = torch.optim.Adam(self.net.parameters(), RATE, fused=True)
        pictures, kinds = _shapes(N_STEPS * BATCH, 0)
        self._pictures, self._kinds = pictures.to(device), kinds.to(device)
        held, held_kinds = _shapes(N_HELD_OUT, 1)
        self._held, self._held_kinds = held.to(device), held_kinds.to(device)
        self._folder = tempfile.TemporaryDirectory(prefix="checkpoints-")
        self._writer = Writer()
        self._pinned: list[Tensor] | None = None
        self._waiting: torch.Event | None = None  # a snapshot on its way, to be written a step later
        self.held_losses: dict[int, float] = {}
        self.drawn: list[Any] = []

    def __call__(self, k: int) -> Tensor:
        """Train on the k-th batch, and pause where an epoch ends; the batch's loss, left on the device."""
        at = k % N_STEPS * BATCH
        self.adam.zero_grad()
        loss = F.cross_entropy(self.net(self._pictures[at : at + BATCH]), self._kinds[at : at + BATCH])
        loss.backward()  # type: ignore[no-untyped-call]
        self.adam.step()
        if self.epochs.reads:
            loss.item()
        self._hand_over()
        if self.epochs.manner is not None and (k + 1) % self.epochs.every == 0:
            self._between(k)
        return loss.detach()

    def _between(self, k: int) -> None:
        tidy = self.epochs.manner == "tidy"
        if VALIDATION in self.epochs.parts:
            with pause(VALIDATION):
                self.held_losses[k + 1] = self._validate_at_once() if tidy else self._validate_as_found()
        if CHECKPOINT in self.epochs.parts:
            self._save_aside() if tidy else self._save()
        if HISTOGRAMS in self.epochs.parts:
            self._draw_on_the_device() if tidy else self._draw_on_the_host()

    # --- validation --------------------------------------------------------------------------------------------------

    def _validate_as_found(self) -> float:
        """The held-out loss, four pictures at a time, with a graph for each, and read each time."""
        total = 0.0
        for at in range(0, N_HELD_OUT, SMALL):
            loss = F.cross_entropy(self.net(self._held[at : at + SMALL]), self._held_kinds[at : at + SMALL])
            total += loss.item() * SMALL
        return total / N_HELD_OUT

    def _validate_at_once(self) -> float:
        """The same without graphs, in a few large batches, added up on the device and read once."""
        with torch.no_grad():
            losses = [
                F.cross_entropy(self.net(self._held[at : at + LARGE]), self._held_kinds[at : at + LARGE])
                for at in range(0, N_HELD_OUT, LARGE)
            ]
            return float(torch.stack(losses).mean())

    # --- checkpoint --------------------------------------------------------------------------------------------------

    def _state(self) -> list[Tensor]:
        """Everything that has to be kept: parameters, and Adam's two means of each."""
        kept = [p.detach() for p in self.net.parameters()]
        for state in self.adam.state.values():
            kept += [state["exp_avg"], state["exp_avg_sq"]]
        return kept

    @property
    def _path(self) -> Path:
        return Path(self._folder.name) / "checkpoint.pt"

    def _save(self) -> None:
        """As `torch.save` of a model on the device: each tensor is copied, then the file is written; all wait."""
        with pause(CHECKPOINT):
            copies = [t.cpu() for t in self._state()]
        with pause(CHECKPOINT, host_only=True):
            torch.save(copies, self._path)

    def _save_aside(self) -> None:
        """A snapshot into pinned memory, for which the host doesn't wait; `_hand_over` has it written."""
        state = self._state()
        on_gpu = self.device.type != "cpu"
        if self._pinned is None:
            empty = [torch.empty(t.shape, dtype=t.dtype) for t in state]
            self._pinned = [t.pin_memory() for t in empty] if on_gpu else empty
        self._writer.finish()  # the buffers are free again
        with pause(CHECKPOINT):
            for target, source in zip(self._pinned, state, strict=True):
                target.copy_(source, non_blocking=on_gpu)
            if on_gpu:
                self._waiting = torch.Event(self.device)
                self._waiting.record()
        if not on_gpu:
            self._writer.write(self._pinned, self._path)

    def _hand_over(self) -> None:
        """Once a step later, when the copies have long arrived, let a thread write the file."""
        if self._waiting is not None:
            self._waiting.synchronize()
            self._waiting = None
            self._writer.write(self._pinned, self._path)

    # --- histograms --------------------------------------------------------------------------------------------------

    def _draw_on_the_host(self) -> None:
        """Every weight is copied to the host, which counts."""
        with pause(HISTOGRAMS):
            copies = [p.detach().cpu().numpy() for p in self.net.parameters()]
        with pause(HISTOGRAMS, host_only=True):
            self.drawn = [np.histogram(each, N_BINS, (-MOST, MOST))[0] for each in copies]

    def _draw_on_the_device(self) -> None:
        """The device counts, and the counts alone are copied, in one go."""
        with pause(HISTOGRAMS), torch.no_grad():
            counts = [torch.histc(p, N_BINS, -MOST, MOST) for p in self.net.parameters()]
            self.drawn = list(torch.stack(counts).cpu().numpy())

    # --- afterwards --------------------------------------------------------------------------------------------------

    def held_out(self) -> float:
        """The loss on pictures that it never saw."""
        return self._validate_at_once()

    def noted(self) -> dict[str, float]:
        """Held-out losses by the step after which they were found, the bytes of a checkpoint, the writer's time."""
        self._writer.finish()
        told = {f"held {k}": loss for k, loss in self.held_losses.items()}
        told["state_bytes"] = float(sum(t.numel() * t.element_size() for t in self._state()))
        return told | {"written_ns": float(self._writer.written_ns)}

    def done(self) -> None:
        """Delete the files."""
        self._writer.finish()
        self._folder.cleanup()

    def numbers(self) -> Iterator[float]:
        """All weights, to compare two trainings by."""
        for p in self.net.parameters():
            yield from p.detach().cpu().flatten().tolist()


@lru_cache(maxsize=2)
def _shapes(n: int, seed: int) -> tuple[Tensor, Tensor]:
    return draw(n, seed, SIDE)


SILENT = Epochs("silent", "steps alone")
FOUND = Epochs("found", "as it was found", "found", reads=True)
OFTEN = Epochs("often", f"as it was found, every {N_STEPS // 4} steps", "found", N_STEPS // 4, reads=True)
TIDY = Epochs("tidy", "the same, tidied up", "tidy")
EPOCHS = (SILENT, FOUND, OFTEN, TIDY)
