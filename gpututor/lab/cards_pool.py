"""Cards in processes of their own, for code that is judged: one a run, forked by a server that has torch ready.

The learner's process gets one end of a socket and nothing else of the card. The server never talks to it, and the
processes it forks are gone with the run. Not on Windows, which has neither fork nor sockets that carry descriptors.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from gpututor.errors import CardsFailed
from gpututor.lab.processes import PACKAGE_ROOT

START_S = 60.0
"""A server imports torch first, on a machine that may be busy."""
ANSWER_S = 10.0
"""From the end of the learner's process to the card's account of it."""
NO_ANSWER = "The simulated card gave no account of the run: {}; make the work smaller and try again."


@dataclass(frozen=True, slots=True)
class CardLimits:
    """What one card process may take: memory (MiB), processor time and life in seconds, operations."""

    memory_mb: int = 6144
    cpu_s: int = 60
    wall_s: int = 90
    n_ops: int = 300_000


@dataclass(frozen=True, slots=True)
class CardRun:
    """One run as its card tells it: a tape's bytes, what the code gave with the card's values, bytes that came in."""

    machine: str
    tape: bytes
    gave: Any
    received_bytes: int


class OneCard:
    """A card that waits for its learner's process; `socket` is the end to hand to it."""

    def __init__(self, theirs: socket.socket, judge: socket.socket) -> None:
        self.socket, self._judge = theirs, judge

    def runs(self) -> tuple[list[CardRun], str]:
        """What ran on it, once the learner's process is gone; and one sentence if the card ended it, else ""."""
        from gpututor.simgpu.remote import frames

        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # for whoever else may hold it, too
        self.socket.close()
        self._judge.settimeout(ANSWER_S)
        try:
            frame = frames.receive(self._judge)
        except TimeoutError:
            return [], NO_ANSWER.format("it still computes")
        except (OSError, frames.Foul):
            frame = None
        finally:
            self._judge.close()
        if frame is None:
            return [], NO_ANSWER.format("it took too much memory or time")
        told, runs, at = json.loads(frame[0]), [], 0
        for run in told["runs"]:
            tape = bytes(frame[1][at : at + run["n"]])
            at += run["n"]
            if run["over"]:
                runs.append(CardRun(run["machine"], tape, run["gave"], run["received_bytes"]))
        sentence = told["sentence"] or ""
        return runs, sentence[:1].upper() + sentence[1:] + "." * bool(sentence)


class Cards:
    """A server of cards, from `with` to the end of it; `late` starts it with the first card that is asked for.

    Raises:
        CardsFailed: on entering, if the server doesn't start.
    """

    def __init__(self, limits: CardLimits | None = None, *, late: bool = False) -> None:
        self.limits = limits or CardLimits()
        self._server: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._ready, self._late = False, late

    def __enter__(self) -> Cards:  # noqa: PYI034  typing.Self came with Python 3.11
        if not self._late:
            self._start()
        return self

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("CUDA_LAUNCH_BLOCKING", None)  # the simulated card would heed it
        code = (
            f"import sys; sys.path.insert(0, {str(PACKAGE_ROOT)!r}); from gpututor.lab.card_process import main; main()"
        )
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-B", "-X", "utf8", "-c", code, str(theirs.fileno())],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        self._orders = ours

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None or self._orders is None:
            return
        self._orders.close()
        try:
            self._server.wait(2.0)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def wait_until_ready(self) -> None:
        """Return once torch is imported over there.

        Raises:
            CardsFailed: the server has ended, or is not ready within a minute.
        """
        if self._server is None:
            self._start()
        orders = self._orders
        assert orders is not None
        orders.settimeout(START_S)
        try:
            ready = self._ready or orders.recv(1) == b"r"
        except OSError:
            ready = False
        if not ready:
            raise CardsFailed("the server of simulated cards did not start; is torch installed, and memory free?")
        self._ready = True
        orders.settimeout(None)

    def card(
        self,
        n_runs: int = 1,
        placed: Sequence[tuple[str, Sequence[Any]]] = (),
        *,
        judged: bool = True,
        reads_before: bool = False,
    ) -> OneCard:
        """A card for so many runs of one learner's process; `placed` are functions that lay tensors on it.

        Where it is `judged`, steps are the card's own and nothing is read outside the counted part, or with
        `reads_before` nothing after it.

        Raises:
            CardsFailed: the server doesn't start, or is gone.
        """
        from gpututor.simgpu.remote import frames

        self.wait_until_ready()
        theirs, card_end = socket.socketpair()
        judge, judge_end = socket.socketpair()
        limits = self.limits
        terms = {
            "n_runs": n_runs,
            "placed": [[where, list(args)] for where, args in placed],
            "judged": judged,
            "reads_before": reads_before,
            "memory_mb": limits.memory_mb,
            "cpu_s": limits.cpu_s,
            "wall_s": limits.wall_s,
            "n_ops": limits.n_ops,
        }
        assert self._orders is not None
        try:
            with card_end, judge_end:
                socket.send_fds(self._orders, [b"c"], [card_end.fileno(), judge_end.fileno()])
            frames.send(judge, json.dumps(terms).encode())
            self._orders.settimeout(START_S)
            if self._orders.recv(1) != b"f":
                raise OSError("it has ended")
            self._orders.settimeout(None)
        except OSError as error:
            raise CardsFailed(f"the server of simulated cards is gone ({error}); start again") from error
        return OneCard(theirs, judge)


_CARDS: ContextVar[Cards | None] = ContextVar("cards", default=None)


@contextmanager
def on_cards_apart(cards: Cards) -> Iterator[None]:
    """Inside the block, code that is judged finds its simulated card in a process of its own."""
    before = _CARDS.set(cards)
    try:
        yield
    finally:
        _CARDS.reset(before)


def cards_apart() -> Cards | None:
    """The cards of the block around, None where a card lives in the learner's process."""
    return _CARDS.get()
