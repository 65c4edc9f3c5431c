"""Lesson 6's tables: what stands beside each way of feeding, and public threads beside this computer."""

from __future__ import annotations

from gpututor.page.lessons.feeding import Feeding
from gpututor.page.sweep import Column, Point, points_table
from gpututor.references import Reference, reference
from gpututor.text import duration

DELTA_BATCHES = 315  # in an epoch of boreshkinai/delta-interpolator#3


def columns(feeding: Feeding) -> tuple[Column, Column]:
    """The wait for input in a step, and the cores kept busy by training process and workers together."""

    def wait(point: Point) -> str:
        return duration(feeding.told[point.key]["wait_ns"])

    def cores(point: Point) -> str:
        busy = feeding.told[point.key]["cpu_cores"]
        return "—" if busy is None else f"{busy:.1f} of {feeding.n_cores}"

    return ("Wait for input", wait), ("Cores busy", cores)


def epoch_columns(feeding: Feeding) -> tuple[Column, Column]:
    """The time to the first batch of the first epoch, and of later ones."""

    def first(point: Point) -> str:
        return duration(feeding.told[point.key]["first_ns"][0])

    def later(point: Point) -> str:
        return duration(feeding.pause_ns(point.key))

    return ("To the first batch", first), ("In later epochs", later)


def starts_table(feeding: Feeding) -> str:
    """Each way to start workers, anew each epoch or once, with what an epoch waits for them; as HTML."""
    ways = [feeding.points[f"{method}-{way}"] for method in feeding.starts for way in ("anew", "stay")]
    return points_table(ways, *epoch_columns(feeding), first="Start")


def thread_rows(feeding: Feeding) -> list[tuple[Reference, float | None]]:
    """Each public thread of the lesson with our ratio of the same two things; None where they were not run."""
    has, told = feeding.has, feeding.told

    def steps(slow: str, fast: str) -> float | None:
        return feeding.step_ns(slow) / feeding.step_ns(fast) if has(slow, fast) else None

    spawned, own = "spawn" in feeding.starts, next(iter(feeding.starts), None)
    few = told["few-1"] if has("few-1") else None
    ours = {
        "wait for data": feeding.step_ns("workers-0") / feeding.compute_ns if has("workers-0") else None,
        "a cheaper decoder": steps("workers-1", "halved"),
        "fewer batches than workers": few["n_workers"] / len(few["who"]) if few else None,
        "threads in workers": steps("threads-n", "threads-1"),
        "workers that stay, Windows": feeding.stays_gain("spawn", DELTA_BATCHES) if spawned else None,
        "workers that stay, Linux": feeding.stays_gain("fork", DELTA_BATCHES) if own == "fork" else None,
        "spawn to fork": _pauses(feeding) if spawned and own == "fork" else None,
    }
    return [(reference(name), ratio) for name, ratio in ours.items()]


def _pauses(feeding: Feeding) -> float:
    """Two short epochs with workers that start afresh, to two with forked ones."""
    spawn, fork = (feeding.told[f"{method}-anew"]["epoch_ns"][:2] for method in ("spawn", "fork"))
    return float(sum(spawn) / sum(fork))
