"""Cards apart for tests: a program in this very process, over a socket, and learners' code in a process of its own."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpututor.exercises import coded
from gpututor.lab import learner_code
from gpututor.lab.cards_pool import Cards, on_cards_apart
from gpututor.lab.learner_code import LearnerRun
from gpututor.model import tape_file
from gpututor.simgpu.remote import session as remote
from gpututor.simgpu.remote.session import RemoteSession

PRODUCT = "gpututor.exercises.on_card.product:run"


class Tapes(list[Any]):
    """What a run left, once its block has ended."""


@contextmanager
def run_apart(
    cards: Cards, machine: str = "p3.2xlarge", *, judged: bool = False
) -> Iterator[tuple[RemoteSession, Tapes]]:
    """A counted run on a card apart; afterwards the list holds its tape."""
    card = cards.card(judged=judged)
    fd = card.socket.detach()
    found = Tapes()
    try:
        with remote.session_over(fd, machine) as session:
            session.start()
            yield session, found
            session.end(None)
    finally:
        remote._lines.pop(fd).sock.close()
        runs, sentence = card.runs()
        found += [tape_file.from_bytes(run.tape) for run in runs] or [sentence]


def tape_here(work: Callable[[], Any], machine: str = "p3.2xlarge") -> tuple[list[Any], Any]:
    """The entries of the same work on a card in this process, and what it gave."""
    from gpututor.model.tape import Sync
    from gpututor.simgpu import simulated_gpu

    with simulated_gpu(machine) as sim:
        sim.account(Sync("synchronize"))
        gave = work()
        sim.account(Sync("synchronize"))
        return sim.tape.entries[1:], gave


def tape_apart(cards: Cards, work: Callable[[], Any], machine: str = "p3.2xlarge") -> tuple[list[Any], Any]:
    """The entries of the work on a card apart, and what it gave."""
    with run_apart(cards, machine) as (_, tapes):
        gave = work()
    return tapes[0].entries, gave


_CHILD = """
import functools, importlib, sys
sys.path.insert(0, sys.argv[2])
from gpututor.lab import learner_child as child
fd, card_fd = int(sys.argv[1]), int(sys.argv[3])

def called_by(harness, function):
    module, _, name = harness.partition(":")
    return functools.partial(getattr(importlib.import_module(module), name), function, card_fd=card_fd)

child.called_by = called_by
sys.argv[1:] = [str(fd)]
child.main()
"""


def run_with_card(
    code: str, function: str, calls: Any = ((),), *, harness: str, timeout_s: float, memory_mb: int, card: int
) -> LearnerRun:
    """`run_learner` with a card's socket handed down, where it can't do that itself."""
    if "card" in inspect.signature(learner_code.run_learner).parameters:
        more: dict[str, Any] = {"card": card}
        return learner_code.run_learner(
            code, function, calls, harness=harness, timeout_s=timeout_s, memory_mb=memory_mb, **more
        )
    answers, theirs = os.pipe()
    root = str(learner_code.PACKAGE_ROOT)
    request = {
        "code": code,
        "function": function,
        "calls": [list(c) for c in calls],
        "harness": harness,
        "import_from": [root],
        "memory_bytes": memory_mb << 20,
        "wall_s": int(timeout_s) + 1,
        "file_bytes": 1 << 20,
    }
    child = subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", _CHILD, str(theirs), root, str(card)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
        pass_fds=(theirs, card),
    )
    os.close(theirs)
    try:
        child.communicate(json.dumps(request).encode(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return LearnerRun(None, f"Your code still ran after {timeout_s:g} s, so it was stopped.")
    with os.fdopen(answers, "rb") as pipe:
        return learner_code._read_answer(pipe.read(), child.returncode, code, memory_mb, "")


def laid(n: int) -> list[Any]:
    """What a judge may have laid on the card: n times n ones."""
    import torch

    return [torch.ones(n, n, device="simgpu")]


def code_apart(cards: Cards, code: str, *, harness: str = PRODUCT, calls: Any = ((64,),)) -> tuple[list[Any], str]:
    """What a learner's function `work` launched on a card apart."""
    before = coded.run_learner
    coded.run_learner = run_with_card  # type: ignore[assignment]
    try:
        with on_cards_apart(cards):
            return coded.on_card(code, "work", harness, calls)
    finally:
        coded.run_learner = before
