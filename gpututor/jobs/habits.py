"""One training loop and the habits of those who watch it: where and how each of them reads the loss.

Every habit trains the same network on the same text with the same arithmetic, so the losses are the same. What
differs is when the host asks the device for a number, and so has to wait until the device got that far.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor

from gpututor.errors import ExperimentError
from gpututor.jobs.characters import BATCH, FILLING, LEARNING_RATE, LENGTH, MOMENTUM, NextCharacter, alphabet, batches

N_BATCHES = 24
EVERY = 10  # steps from one line of the log to the next, where it isn't written at every step


class Bar:
    """A progress bar as training loops have it; a hidden one takes its numbers and shows nothing."""

    def __init__(self, *, hidden: bool) -> None:
        self.hidden, self.text = hidden, ""

    def show(self, **numbers: float) -> None:
        """Draw the bar with these numbers beside it. They were worked out before this is called, hidden or not."""
        if not self.hidden:
            self.text = ", ".join(f"{name} {value:.3f}" for name, value in numbers.items())


@dataclass(slots=True)
class Log:
    """What a watcher wrote down: `numbers` on the host, `paper` printed, `on_card` still on the device."""

    numbers: list[float] = field(default_factory=list)
    paper: io.StringIO = field(default_factory=io.StringIO)
    on_card: list[Tensor] = field(default_factory=list)
    bar: Bar = field(default_factory=lambda: Bar(hidden=True))
    n_seen: int = 0
    sum_on_card: Tensor | None = None
    aside: list[Aside] = field(default_factory=list)


class Aside:
    """A number on its way to the host: copied into pinned memory, and read when the copy has arrived."""

    def __init__(self, number: Tensor) -> None:
        self.number = torch.empty((), dtype=number.dtype)
        self.arrived: torch.Event | None = None
        if number.device.type == "cpu":
            self.number.copy_(number)
            return
        self.number = self.number.pin_memory()
        self.number.copy_(number, non_blocking=True)
        self.arrived = torch.Event(number.device)
        self.arrived.record()

    def read(self) -> float:
        """The number; waits for its copy alone, not for what was launched after it."""
        if self.arrived is not None:
            self.arrived.synchronize()
        return float(self.number)


Watch = Callable[[Tensor, Log], None]


def keep(loss: Tensor, log: Log) -> None:
    """Leave it on the device until somebody asks after the run."""
    log.on_card.append(loss)


def read(loss: Tensor, log: Log) -> None:
    """`.item()`."""
    log.numbers.append(loss.item())


def print_it(loss: Tensor, log: Log) -> None:
    """`print(loss)`."""
    print(loss, file=log.paper)


def bring(loss: Tensor, log: Log) -> None:
    """`loss.cpu()`."""
    log.numbers.append(float(loss.cpu()))


def show_in_bar(loss: Tensor, log: Log) -> None:
    """Hand `.item()` to a bar that is hidden."""
    log.bar.show(loss=loss.item())


def check(loss: Tensor, log: Log) -> None:
    """Ask whether it is still a number."""
    if torch.isnan(loss):
        raise ExperimentError(f"the loss is not a number after {log.n_seen} steps; lower the learning rate")


def read_every_tenth(loss: Tensor, log: Log) -> None:
    """`.item()`, one step in `EVERY`."""
    log.n_seen += 1
    if log.n_seen % EVERY == 0:
        log.numbers.append(loss.item())


def add_up(loss: Tensor, log: Log) -> None:
    """A sum on the device, read one step in `EVERY`: every loss counts, and the host waits once."""
    log.n_seen += 1
    log.sum_on_card = loss.clone() if log.sum_on_card is None else log.sum_on_card.add_(loss)
    if log.n_seen % EVERY == 0:
        log.numbers.append(log.sum_on_card.item() / EVERY)
        log.sum_on_card = None


def read_a_step_later(loss: Tensor, log: Log) -> None:
    """Copy it aside, and read the copy made a step ago, which has long arrived."""
    log.aside.append(Aside(loss))
    if len(log.aside) > 1:
        log.numbers.append(log.aside.pop(0).read())


@dataclass(frozen=True, slots=True)
class Habit:
    """A way to watch: what is done with the loss after the forward pass and at the end of the step.

    `masked` leaves the filling out of the loss by a mask of places to keep; `plain_copy` brings each batch to the
    device the ordinary way, without pinned memory, and waits for it.
    """

    key: str
    label: str
    after_forward: Watch | None = None
    at_end: Watch = keep
    masked: bool = False
    plain_copy: bool = False


SILENT = Habit("silent", "kept on the card, read after the run")
ITEM = Habit("item", "loss.item() at the end of the step", at_end=read)
BAR = Habit("bar", "a hidden progress bar, after the forward pass", show_in_bar)
BOTH = Habit("both", "bar and log: two .item() a step", show_in_bar, read)
PLAIN = Habit("plain", "no .item(), ordinary copy of the batch", plain_copy=True)
PLAIN_ITEM = Habit("plain-item", ".item(), ordinary copy of the batch", at_end=read, plain_copy=True)
WAYS = (
    SILENT,
    ITEM,
    Habit("print", "print(loss)", at_end=print_it),
    Habit("cpu", "loss.cpu() into a list", at_end=bring),
    BAR,
    Habit("check", "if isnan(loss), before the backward pass", check),
    BOTH,
    Habit("mask", "a boolean mask in the loss", masked=True),
    Habit("tenth", f"loss.item() every {EVERY}th step", at_end=read_every_tenth),
    Habit("sum", f"a sum on the card, read every {EVERY}th step", at_end=add_up),
    Habit("later", "copied aside, read a step later", at_end=read_a_step_later),
)
HABITS = (*WAYS, PLAIN_ITEM, PLAIN)


class Training:
    """Network, optimizer and text on a device; `step(k)` trains once and watches as its habit has it."""

    def __init__(self, habit: Habit, device: torch.device, length: int = LENGTH, n_batches: int = N_BATCHES) -> None:
        torch.manual_seed(0)
        self.habit, self.device, self.log = habit, device, Log()
        self.net = NextCharacter().to(device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
        self.pinned = not habit.plain_copy and device.type != "cpu"
        texts = batches(n_batches, length, BATCH)
        self.texts = [each.pin_memory() for each in texts] if self.pinned else texts

    def loss_of(self, characters: Tensor) -> Tensor:
        """Mean surprise at the next character, (length + 1, batch); the filling doesn't count."""
        scores, following = self.net(characters[:-1]), characters[1:]
        if self.habit.masked:
            kept = following != alphabet().index(FILLING)
            return F.cross_entropy(scores[kept], following[kept])
        filling = alphabet().index(FILLING)
        return F.cross_entropy(scores.flatten(0, 1), following.flatten(), ignore_index=filling)

    def step(self, k: int) -> Tensor:
        """Train once; gives the loss, left on the device."""
        characters = self.texts[k % len(self.texts)].to(self.device, non_blocking=self.pinned)
        loss = self.loss_of(characters)
        told = loss.detach()
        if self.habit.after_forward is not None:
            self.habit.after_forward(told, self.log)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.habit.at_end(told, self.log)
        return told
