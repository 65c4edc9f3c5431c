"""Run a learner's function in a process of its own and bring back data: values, or one sentence why not.

The process starts with an empty folder, a bare environment, and limits on time, memory, output and the
number of processes. That keeps accidents away from the page. By itself it is no sandbox: the process may still read
the reader's files. For code from strangers, call this under `isolation.isolated(isolation.best())`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gpututor.errors import SandboxFailed
from gpututor.lab import isolation
from gpututor.lab.learner_answer import Asked, LearnerRun, read_answer
from gpututor.lab.limits import MAX_FILE_BYTES, Limits
from gpututor.lab.one_sandbox import OneSandbox
from gpututor.lab.outlets import Watched
from gpututor.lab.plain_process import run_plainly
from gpututor.lab.processes import PACKAGE_ROOT
from gpututor.lab.protocol import NotData, to_json

__all__ = ["LearnerRun", "one_learner", "run_learner"]

_SHARED: ContextVar[OneSandbox | None] = ContextVar("shared", default=None)


def run_learner(
    code: str,
    function: str,
    calls: Sequence[Sequence[Any]] = ((),),
    *,
    harness: str | None = None,
    timeout_s: float = 3.0,
    memory_mb: int = 1024,
    card: int | None = None,
) -> LearnerRun:
    """What `function`, defined by `code`, returns for each list of arguments in `calls`; takes `timeout_s` at most.

    Arguments and values are JSON data; arrays and tensors come back as lists. The first call that fails
    ends the run. `harness` ("module:function") is called in the function's place, in its process, with the function
    first and then the arguments: for code that takes or gives what is not plain data, such as work on a simulated
    card (`on_card`). `memory_mb` (MiB) counts the interpreter too, some 10 MiB. `card` is the descriptor of a connected
    socket; the harness gets its own number for it as `card_fd`.

    Under `isolated(...)` the process is in a sandbox, and `timeout_s` is processor time, so that a busy machine fails
    no right answer; a longer time on the clock stands behind it. Memory that was there before the code counts not.

    Raises:
        SandboxFailed: a sandbox was asked for, and none could be started. That's no fault of the code's.
    """
    mark = secrets.token_hex(16)
    request = {
        "code": code,
        "function": function,
        "calls": [list(arguments) for arguments in calls],
        "harness": harness,
        "import_from": [str(PACKAGE_ROOT)],
        "memory_bytes": memory_mb * 2**20,
        "wall_s": int(timeout_s) + 1,
        "file_bytes": MAX_FILE_BYTES,
        "mark": mark,
    }
    try:
        to_json(request)
    except NotData as fault:
        return LearnerRun(None, f"The exercise's own inputs are not plain data: {fault}.")
    how = isolation.current()
    limits = how.limits(timeout_s, memory_mb)
    try:
        watched = _watched(request, limits, card, how)
    except OSError as error:
        if how.way is not None:  # whoever grades has to know: the code never ran
            raise error if isinstance(error, SandboxFailed) else SandboxFailed(str(error)) from error
        return LearnerRun(None, f"Your code could not be started ({error}); free some memory or disk and try again.")
    if watched.cut is not None:
        return LearnerRun(None, limits.said(watched.cut), printed=watched.text(), cut=watched.cut)
    asked = Asked(code, len(calls), memory_mb, mark)
    return read_answer(bytes(watched.answer), watched.returncode, asked, watched.text())


def _watched(request: dict[str, Any], limits: Limits, card: int | None, how: isolation.Isolation) -> Watched:
    if how.way is None:
        return run_plainly(to_json(request | ({} if card is None else {"card_fd": card})), limits, card)
    shared = _SHARED.get()
    if shared is not None:
        return shared.run(request, limits, card)
    with OneSandbox(how.way) as alone:
        return alone.run(request, limits, card)


@contextmanager
def one_learner() -> Iterator[OneSandbox | None]:
    """A block in which all runs are of one learner and share one sandbox, where torch is imported only once.

    Each run is still a fresh process with limits of its own. Gives what tells how often the sandbox had to be started
    anew; None where no sandbox is asked for (`isolated`), and runs are as apart as ever. The thread that enters
    must live until the block's end.
    """
    how = isolation.current()
    if how.way is None:
        yield None
        return
    with OneSandbox(how.way) as shared:
        before = _SHARED.set(shared)
        try:
            yield shared
        finally:
            _SHARED.reset(before)
