"""Who judges the bundles: processes on this machine, or a dask cluster. Both call `judge_bundle` and nothing else."""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpututor.errors import GradingNotPossible, GradingStopped
from gpututor.grading.judge_process import Done, close_here, judge_bundle, not_judged

Bundle = Mapping[str, Any]
Judges = Callable[[Sequence[Bundle], Done], int]
"""Judges all bundles, calls `done(key, verdict)` for each item in one thread, gives how often one was tried again."""

CONNECT_S = 20.0
LOST_TRIES = 3  # workers of a cluster that may be lost while they judge the same bundle


def here(n_processes: int) -> Judges:
    """So many judging processes on this machine, each fed by a thread."""

    def judge(bundles: Sequence[Bundle], done: Done) -> int:
        waiting: queue.SimpleQueue[Bundle] = queue.SimpleQueue()
        for bundle in bundles:
            waiting.put(bundle)
        said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        stopping = threading.Event()
        threads = [
            threading.Thread(target=_feed, args=(waiting, said, stopping), name=f"judge {k}")
            for k in range(max(1, min(n_processes, len(bundles))))
        ]
        for thread in threads:
            thread.start()
        try:
            return _gather(said, len(threads), done)
        finally:
            stopping.set()
            for thread in threads:
                thread.join()

    return judge


def _feed(
    waiting: queue.SimpleQueue[Bundle], said: queue.SimpleQueue[tuple[str, Any]], stopping: threading.Event
) -> None:
    """Judge what is waiting until nothing is, and tell of each item at once."""
    try:
        while not stopping.is_set():
            bundle = waiting.get_nowait()
            told = judge_bundle(bundle, lambda key, verdict: said.put((key, verdict)), stopping)
            said.put(("again", told["n_again"]))
    except (queue.Empty, GradingStopped):
        pass
    except Exception as error:  # noqa: BLE001
        said.put(("error", error))
    finally:
        close_here()
        said.put(("over", None))


def _gather(said: queue.SimpleQueue[tuple[str, Any]], n_threads: int, done: Done) -> int:
    n_again = 0
    while n_threads:
        try:
            what, told = said.get(timeout=0.5)  # with a limit, so that Ctrl-C is heard on every system
        except queue.Empty:
            continue
        if what == "error":
            raise told
        if what == "over":
            n_threads -= 1
        elif what == "again":
            n_again += told
        else:
            done(what, told)
    return n_again


def cluster(address: str) -> Judges:
    """The workers of the dask cluster whose scheduler listens at `address`, such as tcp://10.0.0.1:8786.

    Raises:
        GradingNotPossible: distributed isn't installed.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise GradingNotPossible(
            "grading on a cluster needs the package distributed; install it with pip install 'gpututor[dask]', on the "
            "workers too"
        ) from error

    def judge(bundles: Sequence[Bundle], done: Done) -> int:
        try:
            client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise GradingNotPossible(
                f"no dask scheduler answers at {address} ({error}); start one with dask scheduler, and workers"
            ) from error
        with client:
            if not client.scheduler_info(n_workers=-1)["workers"]:
                raise GradingNotPossible(f"the dask scheduler at {address} has no workers; start some with dask worker")
            return _on_cluster(distributed, client, bundles, done)

    return judge


def _on_cluster(distributed: Any, client: Any, bundles: Sequence[Bundle], done: Done) -> int:
    """Hand the bundles out and take verdicts as they come. What a lost worker had is handed to another one."""
    n_again = 0
    told_of = {client.submit(judge_bundle, bundle, pure=False, retries=LOST_TRIES): bundle for bundle in bundles}
    coming = distributed.as_completed(told_of, loop=client.loop)
    for future in coming:
        bundle = told_of.pop(future)
        try:
            told = future.result()
        except distributed.KilledWorker:
            if len(bundle["items"]) == 1:
                told = _given_up(bundle)
            else:  # one of its items ends workers; alone it does no harm to the others
                for item in bundle["items"]:
                    alone = client.submit(judge_bundle, {**bundle, "items": [item]}, pure=False, retries=LOST_TRIES)
                    told_of[alone] = {**bundle, "items": [item]}
                    coming.add(alone)
                continue
        except (ModuleNotFoundError, AttributeError) as error:
            raise GradingNotPossible(
                f"the cluster's workers have no such gpututor ({error}); install it there"
            ) from error
        n_again += told["n_again"]
        for key, verdict in told["verdicts"].items():
            done(key, verdict)
    return n_again


def _given_up(bundle: Bundle) -> dict[str, Any]:
    item = bundle["items"][0]
    return {"verdicts": {item["key"]: not_judged(item)}, "n_again": LOST_TRIES}
