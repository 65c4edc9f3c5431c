"""A loop whose steps get longer: it keeps every loss, and goes through all of them after each step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor, nn

from gpututor.jobs.shapes import KINDS, draw
from gpututor.marking import pause

SIDE, WIDTH, BATCH, N_BATCHES, RATE = 16, 64, 64, 16, 0.1
REPORT = "report"
PICTURES = ("real_A", "fake_B", "rec_A", "real_B", "fake_A", "rec_B")  # as CycleGAN's page has them


class GrowingTraining:
    """A small network on a device; `history` keeps the losses in one of the ways below. Sets torch's global seed."""

    def __init__(self, way: str, device: torch.device) -> None:
        torch.manual_seed(0)
        self.way = way
        self.net = nn.Sequential(nn.Linear(SIDE * SIDE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, len(KINDS))).to(device)
        self.sgd = torch.optim.SGD(self.net.parameters(), RATE)
        pictures, kinds = draw(N_BATCHES * BATCH, 0, SIDE)
        self._pictures, self._kinds = pictures.flatten(1).to(device), kinds.to(device)
        self.history: list[Tensor] = []
        self.numbers: list[float] = []
        self.mean: Tensor | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="report-")
        self._tell: Callable[[Tensor], None] = WAYS[way][1].__get__(self)

    def __call__(self, k: int) -> Tensor:
        """Train on the k-th batch, and say how the losses were so far; the batch's loss, left on the device."""
        at = k % N_BATCHES * BATCH
        self.sgd.zero_grad()
        loss = F.cross_entropy(self.net(self._pictures[at : at + BATCH]), self._kinds[at : at + BATCH])
        loss.backward()  # type: ignore[no-untyped-call]
        self.sgd.step()
        self._tell(loss)
        return loss.detach()

    def average_all(self, loss: Tensor) -> None:
        """Append the loss, its graph and all, and take the mean of the whole list."""
        self.history.append(loss)
        self.mean = sum(self.history) / len(self.history)  # type: ignore[assignment]

    def go_on_from_the_last_mean(self, loss: Tensor) -> None:
        """The same mean from the one before."""
        with torch.no_grad():
            self.history.append(loss.detach())
            if self.mean is None:
                self.mean = loss.detach().clone()
            else:
                self.mean += (loss - self.mean) / len(self.history)

    def rewrite_the_report(self, loss: Tensor) -> None:
        """Read the loss, and write a page with a line for every step so far."""
        self.numbers.append(loss.item())
        with pause(REPORT, host_only=True):
            rows = (_row(k, value) for k, value in enumerate(self.numbers))
            self.report.write_text(f"<table>{''.join(rows)}</table>", encoding="utf-8")

    @property
    def report(self) -> Path:
        """The page that is rewritten."""
        return Path(self._folder.name) / "report.html"

    def noted(self) -> dict[str, float]:
        """The mean of all losses as the way has it, where it keeps one."""
        return {} if self.mean is None else {"mean": float(self.mean.detach())}

    def done(self) -> None:
        """Delete the page."""
        self._folder.cleanup()


def _row(k: int, loss: float) -> str:
    """A line of the report: the step, its loss, and the pictures that such pages show."""
    pictures = (f"<td><a href='{k:06d}_{name}.png'><img src='{k:06d}_{name}.png'></a></td>" for name in PICTURES)
    return f"<tr><td>{k}</td><td>{loss:.4f}</td>{''.join(pictures)}</tr>"


WAYS: dict[str, tuple[str, Callable[[GrowingTraining, Tensor], None]]] = {
    "all": ("sum(losses) / len(losses)", GrowingTraining.average_all),
    "last": ("a running mean", GrowingTraining.go_on_from_the_last_mean),
    "report": ("a page rewritten", GrowingTraining.rewrite_the_report),
}
"""What is done with the loss after each step, by key: as a reader sees it, and the method."""
