"""The other side of the lab: a process that waits for jobs, runs one at a time and tells how far it is.

Started by `client.WorkerProcess` as `python -m gpututor.lab.worker`. Three rules: nobody but the
wire's two ends writes to the wire; when the page's process is gone this one ends itself, whatever it
is doing; every job finds random generators, threads, environment and folder as a fresh process has them.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import importlib
import os
import queue
import random
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from gpututor.errors import GpututorError
from gpututor.lab.protocol import (
    MAX_MESSAGE_BYTES,
    MAX_NOTE_CHARACTERS,
    MAX_PARTIAL_BYTES,
    Ended,
    NotData,
    Run,
    Started,
    Stop,
    Ticked,
    Wire,
    WireClosed,
    WireError,
    to_json,
)
from gpututor.progress import Progress, Stopped

TICK_EVERY_S = 0.2  # five a second: a page redraws no faster, and more lags behind (marimo issue 10725)
LOG_CHARACTERS = 8_000


class NoSuchExperiment(GpututorError, LookupError):
    """The experiment's name leads to no function."""


class Teller:
    """Sends a job's ticks, at most one in TICK_EVERY_S; the newest one waits its turn and is never lost."""

    def __init__(self, wire: Wire, job: str) -> None:
        self._wire, self._job = wire, job
        self._next_s = 0.0
        self._waiting: Ticked | None = None
        self._partial: object = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        threading.Thread(target=self._flush, daemon=True, name="ticks").start()

    def tell(self, k: int, n: int, note: str, partial: object) -> None:
        """Send this tick now or when its turn comes.

        Raises:
            NotData: `partial` is no data or too big.
        """
        with self._lock:
            self._partial = partial if partial is not None else self._partial
            now_s = time.monotonic()
            if now_s < self._next_s:
                # Without `partial`: the experiment may change it before the turn comes.
                self._waiting = Ticked(self._job, int(k), int(n), note[:MAX_NOTE_CHARACTERS], None)
                return
            self._next_s, self._waiting = now_s + TICK_EVERY_S, None
            partial, self._partial = self._partial, None
            if len(to_json(partial)) > MAX_PARTIAL_BYTES:
                raise NotData(f"it takes more than {MAX_PARTIAL_BYTES / 2**20:.0f} MiB")
            self._wire.send(Ticked(self._job, int(k), int(n), note[:MAX_NOTE_CHARACTERS], partial))

    def _flush(self) -> None:
        while not self._over.wait(TICK_EVERY_S):
            with self._lock:
                if self._waiting is None or time.monotonic() < self._next_s or self._over.is_set():
                    continue
                tick, self._waiting = self._waiting, None
                self._next_s = time.monotonic() + TICK_EVERY_S
                try:
                    self._wire.send(tick)
                except WireClosed:
                    return

    def end(self) -> None:
        """No more ticks."""
        with self._lock:
            self._over.set()


def find(experiment: str) -> Callable[..., object]:
    """The function that "module:function" names.

    Raises:
        NoSuchExperiment: there is no such module or no such function in it.
    """
    module_name, _, name = experiment.partition(":")
    try:
        function = getattr(importlib.import_module(module_name), name, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise NoSuchExperiment(f'there is no experiment "{experiment}": no module is called {error.name}.') from error
    if not callable(function):
        raise NoSuchExperiment(f'there is no experiment "{experiment}": its module has no function {name}.')
    return function  # type: ignore[no-any-return]


def outcome(run: Run, progress: Progress) -> Ended:
    """What became of the job; whatever the experiment raises is told, never raised."""
    try:
        experiment = find(run.experiment)
        seed_generators(run.seed)  # only now: finding it may have imported torch
        data = experiment(progress, **run.params)
        state = "stopped" if progress.stop_was_seen else "done"
    except Stopped:
        data, state = progress.partial, "stopped"
    except WireClosed:
        raise
    except NotData as fault:
        return Ended(run.job, "failed", None, f"the experiment's partial result is not plain data: {fault}.", "")
    except BaseException as error:  # noqa: BLE001 - whatever it raises is told
        log = traceback.format_exc()[-LOG_CHARACTERS:]
        return Ended(run.job, "failed", None, what_was_raised(error), log)
    try:
        size_bytes = len(to_json(data))
    except NotData as fault:
        text = f"the experiment's result is not plain data: {fault}; hand back numbers, texts, lists and dicts."
        return Ended(run.job, "failed", None, text, "")
    if size_bytes > MAX_MESSAGE_BYTES * 0.99:  # the rest of the message needs room too
        text = f"the experiment's result takes {size_bytes / 2**20:.0f} MiB, more than {MAX_MESSAGE_BYTES / 2**20:.0f}"
        return Ended(run.job, "failed", None, f"{text}; write it into a file of the results folder.", "")
    return Ended(run.job, state, data, "", "")


def what_was_raised(error: BaseException) -> str:
    """One sentence; our own errors are sentences already."""
    text = " ".join(str(error).split())[:MAX_NOTE_CHARACTERS]
    if isinstance(error, GpututorError):
        return text
    if isinstance(error, SystemExit):
        return f"the experiment ended itself with sys.exit({text}) and handed back nothing."
    return f"the experiment raised {type(error).__name__}" + (f": {text}" if text else "")


def fresh_state(environment: dict[str, str], folder: str | None) -> None:
    """Put back what an earlier job may have left changed: environment, folder, torch's settings."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder or Path(os.sep).resolve())
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(int(environment.get("OMP_NUM_THREADS", "1")))
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


def seed_generators(seed: int) -> None:
    """Set the global generators of Python, numpy and torch, as far as they are imported."""
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)


class Worker:
    """One process's loop: hear on one thread, work on the main one."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._jobs: queue.SimpleQueue[Run] = queue.SimpleQueue()
        self._stopped: set[str] = set()
        self._environment = dict(os.environ)

    def listen(self) -> None:
        """Hear until the page's process hangs up, then end this process and all it started."""
        try:
            while True:
                message = self._wire.receive()
                if isinstance(message, Run):
                    self._jobs.put(message)
                elif isinstance(message, Stop):
                    self._stopped.add(message.job)
        except (WireClosed, WireError):
            end_myself()

    def work(self) -> None:
        """Run job after job, for ever."""
        while True:
            self._serve(self._jobs.get())

    def _serve(self, run: Run) -> None:
        fresh_state(self._environment, run.results_dir)
        self._wire.send(Started(run.job))
        # Ends the process even from inside a C call that never lets the listener run. The page's
        # own limit comes first; this one is for when the page is gone too.
        faulthandler.dump_traceback_later(run.wall_limit_s, exit=True)
        teller = Teller(self._wire, run.job)
        folder = Path(run.results_dir) if run.results_dir else None
        ended = outcome(run, Progress(teller.tell, lambda: run.job in self._stopped, folder))
        teller.end()
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.flush()
        sys.stderr.flush()
        self._wire.send(ended)
        self._stopped.discard(run.job)
        del ended
        gc.collect()


def end_myself() -> None:
    """End this process and its group without another line of Python."""
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def open_wire(fd: int) -> Wire:
    """This side's end of the wire: an inherited descriptor, or on Windows what the page wrote to standard input.

    Windows hands no descriptors down; `socket.share` is its way. That way has not been tried.
    """
    if sys.platform == "win32":
        return Wire(socket.fromshare(sys.stdin.buffer.read()))
    os.set_inheritable(fd, False)
    return Wire(socket.socket(fileno=fd))


def main() -> None:
    """Serve the page that started this process until it hangs up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wire", type=int, default=-1)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--torch", action="store_true")
    arguments = parser.parse_args()
    faulthandler.enable()
    if arguments.nice and hasattr(os, "nice"):
        os.nice(arguments.nice)
    worker = Worker(open_wire(arguments.wire))
    threading.Thread(target=worker.listen, daemon=True, name="listen").start()
    if arguments.torch:
        importlib.import_module("torch")
    try:
        worker.work()
    except WireClosed:
        end_myself()


if __name__ == "__main__":
    main()
