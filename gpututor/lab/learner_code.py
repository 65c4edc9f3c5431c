"""Run a learner's function in a process of its own and bring back data: values, or one sentence why not.

The process starts with an empty folder, a bare environment, and limits on time, memory, output and the
number of processes. That keeps accidents away from the page. It is no sandbox: the process may still read
the reader's files, so code from strangers needs more (see grading).
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpututor.lab import learner_child
from gpututor.lab.processes import PACKAGE_ROOT, end_group, how_it_ended, memory_bytes, n_descendants
from gpututor.lab.protocol import NotData, to_json

PRINTED_BYTES = 2**14  # shown under the exercise: some 200 lines
MAX_PRINTED_BYTES = 2**20  # beyond that it's a loop that prints
MAX_ANSWER_BYTES = 4 * 2**20
MAX_FILE_BYTES = 64 * 2**20
MAX_PROCESSES = 16  # a function may start a few; a fork bomb starts hundreds within a look
LOOK_EVERY_S = 0.05
MIB = 2**20


@dataclass(frozen=True, slots=True)
class LearnerRun:
    """What a learner's function gave: `values`, one a call, or a `sentence` and, when known, the `line` it is about.

    A value of None also stands for an unanswered `...`. `printed` is the beginning of what the code printed.
    Texts are the learner's: escape them before they go into a page.
    """

    values: tuple[Any, ...] | None
    sentence: str | None = None
    line: int | None = None
    printed: str = ""


Cut = Literal["time", "memory", "output", "answer", "processes"]


@dataclass(slots=True)
class _Watched:
    """What came out of the process so far, and why it was cut off, if it was."""

    printed: bytearray = field(default_factory=bytearray)
    answer: bytearray = field(default_factory=bytearray)
    printed_bytes: int = 0
    cut: Cut | None = None


def run_learner(
    code: str,
    function: str,
    calls: Sequence[Sequence[Any]] = ((),),
    *,
    harness: str | None = None,
    timeout_s: float = 3.0,
    memory_mb: int = 1024,
) -> LearnerRun:
    """What `function`, defined by `code`, returns for each list of arguments in `calls`; takes `timeout_s` at most.

    Arguments and values are JSON data; arrays and tensors come back as lists. The first call that fails
    ends the run. `harness` ("module:function") is called in the function's place, in its process, with the function
    first and then the arguments: for code that takes or gives what is not plain data, such as work on a simulated
    card (`on_card`). `memory_mb` (MiB) counts the interpreter too, some 10 MiB.
    """
    request = {
        "code": code,
        "function": function,
        "calls": [list(arguments) for arguments in calls],
        "harness": harness,
        "import_from": [str(PACKAGE_ROOT)],
        "memory_bytes": memory_mb * MIB,
        "wall_s": int(timeout_s) + 1,
        "file_bytes": MAX_FILE_BYTES,
    }
    try:
        line = to_json(request)
    except NotData as fault:
        return LearnerRun(None, f"The exercise's own inputs are not plain data: {fault}.")
    try:
        with tempfile.TemporaryDirectory(prefix="gpututor-", ignore_cleanup_errors=True) as folder:
            watched, returncode = _run(line, folder, timeout_s, memory_mb * MIB)
    except OSError as error:
        return LearnerRun(None, f"Your code could not be started ({error}); free some memory or disk and try again.")
    printed = bytes(watched.printed).decode("utf-8", "replace")
    if watched.cut is not None:
        return LearnerRun(None, _cut_sentence(watched.cut, timeout_s, memory_mb), printed=printed)
    return _read_answer(bytes(watched.answer), returncode, code, memory_mb, printed)


def _run(request: bytes, folder: str, timeout_s: float, memory_limit_bytes: int) -> tuple[_Watched, int | None]:
    """Start the process, feed it, watch it to its end; nothing of it is left when this returns."""
    answers, theirs = os.pipe()
    try:
        process = _start(folder, theirs)
    except OSError:
        os.close(answers)
        raise
    finally:
        os.close(theirs)
    try:
        with os.fdopen(answers, "rb", buffering=0) as answer_pipe:
            watched = _watch(process, request, answer_pipe.fileno(), timeout_s, memory_limit_bytes)
    finally:
        ended_by_itself = process.poll()
        end_group(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
    return watched, ended_by_itself


def _start(folder: str, answer_fd: int) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    environment |= {"HOME": folder, "TMPDIR": folder, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-I", "-B", "-X", "utf8", str(Path(learner_child.__file__).resolve())]
    if sys.platform == "win32":
        # No descriptor can be handed down: prints are dropped and the answer comes on standard output. Not tried.
        return subprocess.Popen(
            command, cwd=folder, env=environment, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    return subprocess.Popen(
        [*command, str(answer_fd)],
        cwd=folder,
        env=environment,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(answer_fd,),
        start_new_session=True,
    )


def _watch(
    process: subprocess.Popen[bytes], request: bytes, answer_fd: int, timeout_s: float, memory_limit_bytes: int
) -> _Watched:
    """Read what the process prints and answers until it ends or goes beyond a limit."""
    watched = _Watched()
    until_s = time.monotonic() + timeout_s
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)
        process.stdin.close()
    except OSError:
        return watched  # it died before it listened
    with selectors.DefaultSelector() as outlets:
        outlets.register(process.stdout, selectors.EVENT_READ, False)
        outlets.register(answer_fd, selectors.EVENT_READ, True)
        while True:
            over = process.poll() is not None
            # Once it's over, take what is left without waiting: its children may hold the pipes open.
            some = _read_some(outlets, watched, 0.0 if over else LOOK_EVERY_S)
            if watched.cut is None and not over:
                watched.cut = _beyond(process.pid, until_s, memory_limit_bytes)
            if watched.cut is not None or (over and not some):
                return watched


def _read_some(outlets: selectors.BaseSelector, watched: _Watched, wait_s: float) -> bool:
    """Read one piece from every outlet that has one; whether there was any."""
    if not outlets.get_map():
        time.sleep(wait_s)
        return False
    some = False
    for key, _ in outlets.select(wait_s):
        piece = os.read(key.fd, 2**16)
        if not piece:
            outlets.unregister(key.fileobj)
            continue
        some = True
        if key.data:
            watched.answer += piece
        else:
            watched.printed_bytes += len(piece)
            watched.printed += piece[: PRINTED_BYTES - len(watched.printed)]
    if watched.printed_bytes > MAX_PRINTED_BYTES:
        watched.cut = "output"
    if len(watched.answer) > MAX_ANSWER_BYTES:
        watched.cut = "answer"
    return some


def _beyond(pid: int, until_s: float, memory_limit_bytes: int) -> Cut | None:
    if time.monotonic() > until_s:
        return "time"
    if (memory_bytes(pid) or 0) > memory_limit_bytes:
        return "memory"
    return "processes" if n_descendants(pid) > MAX_PROCESSES else None


def _cut_sentence(cut: Cut, timeout_s: float, memory_mb: int) -> str:
    return {
        "time": f"Your code still ran after {timeout_s:g} s, so it was stopped; is there a loop without an end?",
        "memory": _too_much_memory(memory_mb),
        "output": "Your code printed more than 1 MiB, so it was stopped; is there a print in a loop without an end?",
        "answer": "Your function gave back more than 4 MiB, so it was stopped; give back only what is asked.",
        "processes": f"Your code started more than {MAX_PROCESSES} processes, so it was stopped; it needs none.",
    }[cut]


def _too_much_memory(memory_mb: int) -> str:
    return f"Your code asked for more memory than the {memory_mb:,} MiB it may have; does a list grow without an end?"


def _read_answer(answer: bytes, returncode: int | None, code: str, memory_mb: int, printed: str) -> LearnerRun:
    """The process's answer in our words. All of it may be made up by the learner, so nothing in it is trusted."""
    try:
        told = json.loads(answer)
        if "values" in told:
            return LearnerRun(tuple(told["values"]), printed=printed)
        if "missing" in told:
            name = str(told["missing"])[:80]
            text = f"Your code defines no function called {name}; keep the name that was there."
            return LearnerRun(None, text, None, printed)
        if "not_data" in told:
            what = str(told["not_data"])[:200]
            text = f"Your function gave back {what}; give back a number, a text or a list."
            return LearnerRun(None, text, None, printed)
        return _fault(told["fault"], told["call"], code, memory_mb, printed)
    except (ValueError, KeyError, TypeError, AttributeError):
        how = how_it_ended(returncode)
    return LearnerRun(None, f"Your code ended its own process ({how}) before it gave an answer.", None, printed)


def _fault(fault: dict[str, Any], call: object, code: str, memory_mb: int, printed: str) -> LearnerRun:
    kind, message = str(fault["kind"])[:80], " ".join(str(fault["message"]).split())[:300]
    line = fault["line"] if isinstance(fault["line"], int) else None
    lines = code.splitlines()
    quoted = lines[line - 1].strip()[:80] if line is not None and 0 < line <= len(lines) else ""
    where = "" if line is None else f"Line {line}" + (f" ({quoted})" if quoted else "") + ": "
    if kind == "TypeError" and line is None and isinstance(call, int):
        where = "Calling your function: "
    words = {
        "MemoryError": _too_much_memory(memory_mb),
        "RecursionError": "your function calls itself without an end (RecursionError).",
        "SystemExit": "your code called sys.exit, so there is no answer; let the function return.",
    }.get(kind, f"{kind}: {message}" if message else kind)
    sentence = where + words if where else words[:1].upper() + words[1:]
    return LearnerRun(None, sentence, line, printed)
