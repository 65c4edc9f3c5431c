"""How quick the pages are: opening each lesson, and from a control to its redrawn chart. Medians, in seconds.

Run it on a quiet machine, from the root of the clone: `.venv/bin/python -m tools.page_speed` (`--json` for a program).
It is no test: it depends on the machine, and a median near its target says nothing about the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.browser import Server, Visit, browser, visit
from tests.conftest import CHROMIUM_NAMES
from tests.lessons.journeys import JOURNEYS, Control, Journey, course, picture, shortened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TARGET_S = {"cold": 3.5, "warm": 2.0, "control": 0.3}
FINISHED, BLANK = "finished", "blank"
FRONT = "00_start_here.py"
WORST_WAIT_S = 20.0
SETTLED_S = 6.0
"""Between two openings: each page warms a worker 2 s later, which loads torch; readers don't open the next one then."""
READ_S = 1.5
"""A reader looks at what a control changed before moving it again; until then the cells further down are done too."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What was timed: a page opened "cold" or "warm", or a "control" moved; every sample in seconds."""

    kind: str
    file: str
    what: str
    samples_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        """Median of the samples, in seconds."""
        return statistics.median(self.samples_s)


Ready = Callable[[Visit], None]


def pages() -> Iterator[tuple[str, str, Ready]]:
    """Each page with a reader and what it is ready with: its last computed cell."""
    yield FRONT, BLANK, front_is_ready
    for journey in JOURNEYS:
        yield journey.file, BLANK, journey.wait_until_open
        yield journey.file, FINISHED, journey.wait_until_finished


def front_is_ready(page: Visit) -> None:
    """Wait for the end of the front page."""
    page.wait_for("ledger_map", "MFU")
    page.wait_for("paper", "to print")


@dataclass(frozen=True, slots=True)
class Bench:
    """Lessons with short runs, the files of a reader who has finished them, a browser, and how often to measure."""

    lessons: Path
    files: Path
    browser: Browser
    n: int

    @contextmanager
    def server(self) -> Iterator[Server]:
        """A new server, whose readers are the finished one and new ones."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(self.files, Path(folder) / "home")
            with course(self.lessons, Path(folder)) as server:
                yield server

    def opened_s(self, server: Server, file: str, reader: str, ready: Ready) -> float:
        """Seconds from asking for a page in a new browser context to its last computed cell."""
        began_s = time.perf_counter()
        page = visit(self.browser, server.address(file, learner=reader))
        ready(page)
        took_s = time.perf_counter() - began_s
        page.close()
        return took_s

    def again_s(self, server: Server, file: str, reader: str, ready: Ready) -> float:
        """The same for a page that this browser has shown before, so that marimo's own files are in its cache."""
        page = visit(self.browser, server.address(file, learner=reader))
        ready(page)
        page.page.goto("about:blank")
        time.sleep(SETTLED_S)
        began_s = time.perf_counter()
        page.page.goto(server.address(file, learner=reader))
        ready(page)
        took_s = time.perf_counter() - began_s
        page.close()
        return took_s

    def cold(self, file: str, reader: str, ready: Ready) -> Timing:
        """Each time with a new server."""
        samples = []
        for _ in range(self.n):
            with self.server() as server:
                samples.append(self.opened_s(server, file, reader, ready))
        return Timing("cold", file, f"{reader} reader", tuple(samples))

    def warm(self, server: Server, file: str, reader: str, ready: Ready) -> Timing:
        """With a server and a browser that have shown the page before."""
        samples = [self.again_s(server, file, reader, ready) for _ in range(self.n)]
        return Timing("warm", file, f"{reader} reader", tuple(samples))

    def controls(self, server: Server, journey: Journey) -> Iterator[Timing]:
        """Each control of a finished lesson."""
        for control in journey.controls:
            page = visit(self.browser, server.address(journey.file, learner=FINISHED))
            journey.wait_until_finished(page)
            samples = []
            for k in range(self.n):
                page.page.wait_for_timeout(READ_S * 1000)
                samples.append(redrawn_s(page, control, back=bool(k % 2)))
            page.close()
            yield Timing("control", journey.file, control.name, tuple(samples))


def redrawn_s(page: Visit, control: Control, *, back: bool) -> float:
    """Seconds from moving a control to a changed picture; looking takes some 0.02 s each time.

    Raises:
        RuntimeError: nothing changed.
    """
    before = picture(page, control.drawn_in)
    move = control.back if back and control.back else control.move
    began_s = time.perf_counter()
    move(page)
    while (took_s := time.perf_counter() - began_s) < WORST_WAIT_S:
        if picture(page, control.drawn_in) != before:
            return time.perf_counter() - began_s
    raise RuntimeError(f"{control.name}: nothing changed in {took_s:.0f} s")


def finish_every_lesson(lessons: Path, scratch: Path, running: Browser) -> Path:
    """Walk one reader through every lesson; gives the folder with this reader's files."""
    with course(lessons, scratch) as server:
        for journey in JOURNEYS:
            page = visit(running, server.address(journey.file, learner=FINISHED))
            journey.wait_until_open(page)
            journey.guess(page)
            journey.run(page)
            journey.wait_until_finished(page)
            page.close()
    return scratch / "home"


def measure(bench: Bench, kinds: Collection[str]) -> Iterator[Timing]:
    """Every timing of these kinds, one after the other."""
    for page in pages() if "cold" in kinds else ():
        yield bench.cold(*page)
    with bench.server() as server:
        for page in pages() if "warm" in kinds else ():
            yield bench.warm(server, *page)
        for journey in JOURNEYS if "control" in kinds else ():
            yield from bench.controls(server, journey)


def line(timing: Timing) -> str:
    """One timing as a line of text."""
    samples = " ".join(f"{s:.2f}" for s in timing.samples_s)
    over = "" if timing.median_s <= TARGET_S[timing.kind] else f"  over {TARGET_S[timing.kind]} s"
    return f"{timing.kind:8}{timing.file:32}{timing.what:24}{timing.median_s:5.2f} s  ({samples}){over}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How quick the pages are, in seconds.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--kind", choices=list(TARGET_S), action="append", help="measure only this; may be repeated")
    parser.add_argument("-n", type=int, default=5, help="samples of each timing; 5 by default")
    asked = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if chromium is None:
        sys.exit(f"page_speed: found no browser called {', '.join(CHROMIUM_NAMES)} on the path; install Chromium")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    timings = []
    with tempfile.TemporaryDirectory() as folder, browser(chromium) as running:
        scratch = Path(folder)
        lessons = shortened(scratch)
        bench = Bench(lessons, finish_every_lesson(lessons, scratch, running), running, asked.n)
        for timing in measure(bench, asked.kind or list(TARGET_S)):
            timings.append(timing)
            if not asked.json:
                print(line(timing), flush=True)
    if asked.json:
        told = [asdict(timing) | {"median_s": timing.median_s} for timing in timings]
        print(json.dumps({"load_at_start": load, "n_cpus": os.cpu_count(), "timings": told}, indent=1))
    elif load is not None:
        print(f"Load of the machine at the start: {load:.1f} on {os.cpu_count()} processors.")


if __name__ == "__main__":
    main()
