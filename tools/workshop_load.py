"""A class of simulated readers on one workshop server: does anybody see another's state, what does it take, how quick?

Each reader opens lessons in their own name while asking for their neighbour's, guesses, runs lesson 1's experiment,
answers and checks both its exercises with answers that nobody else gives, and comes back later. They speak marimo's
protocol without a browser. Run it from the root of the clone: `.venv/bin/python -m tools.workshop_load --readers 30`.
Readers and server share the machine, so its load belongs beside the figures; Ctrl-C ends both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpututor.workshop.keys import Holder
from tests.workshop.protocol import OpenPage, PageDied
from tests.workshop.serving import Workshop, workshop

GUESSED = "01_the_gauge.py"
OTHERS = ("02_the_25_percent_mystery.py", "03_one_sample_at_a_time.py")
GUESS = "about a hundredth"
LONGEST_S = 1200.0
MIB = 2**20
CODE = """def sm_fill(n_blocks, n_sms):
    # {marker}
    return n_blocks / (-(-n_blocks // n_sms) * n_sms)
"""


@dataclass
class Seen:
    """What all readers saw: seconds by what was timed, and everything that should not have happened."""

    samples_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    died: list[str] = field(default_factory=list)
    cross_talk: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def took(self, what: str, seconds: float) -> None:
        """Keep one sample."""
        with self.lock:
            self.samples_s[what].append(seconds)


@dataclass(frozen=True)
class Memory:
    """Highest resident memory in MiB: of the server, of its workers and checks together, and of all at one moment."""

    server_mib: float
    workers_mib: float
    together_mib: float
    n_workers: int


def marker(holder: Holder) -> str:
    """A word that only this reader's answers hold."""
    return f"marker-of-{holder.id}."


def number(k: int) -> str:
    """A number that only this reader types."""
    return f"0.00{k + 1:03d}7"


class ClassReader:
    """One reader's hour: everything goes through pages opened with their key."""

    def __init__(self, server: Workshop, k: int, seen: Seen, lessons: Sequence[str]) -> None:
        self._server, self._k, self._seen, self._lessons = server, k, seen, lessons
        learners = server.keys.learners
        self.holder, self.neighbour = learners[k], learners[(k + 1) % len(learners)]
        self.pages: list[OpenPage] = []

    def visit(self) -> None:
        """The whole of it; what goes wrong is told, not raised."""
        try:
            first, *_ = [self._open(file) for file in self._lessons]
            self._run(first)
            self._answer(first)
            self._knock(first)
            self._come_back()
        except (PageDied, OSError) as error:
            self._seen.died.append(f"{self.holder.id}: {error}")

    def _open(self, file: str) -> OpenPage:
        page = OpenPage(self._server.url, self.holder.key, file, {"learner": self.neighbour.id, "instructor": "1"})
        began_s = time.perf_counter()
        page.open()
        self.pages.append(page)
        page.wait_for("run_panel", lambda shown: "gt-run" in shown)
        page.wait_for("guess_card", lambda shown: "gt-guess" in shown)
        self._seen.took("open a lesson", time.perf_counter() - began_s)
        return page

    def _run(self, page: OpenPage) -> None:
        page.put(page.element("guess_card", "marimo-radio"), GUESS)
        self._seen.took("control to redraw", page.wait_for("run_panel", lambda shown: "Opens once" not in shown))
        page.press(page.element("run_panel", "marimo-button"))
        self._seen.took("run queued to result", page.wait_for("exercise_2", "marimo-code-editor", LONGEST_S))

    def _answer(self, page: OpenPage) -> None:
        page.put(page.element("exercise_1", "marimo-text"), number(self._k))
        page.put(page.element("exercise_2", "marimo-code-editor"), CODE.format(marker=marker(self.holder)))
        time.sleep(0.5)
        page.press(page.element("exercise_1", "marimo-button"))
        page.wait_for("exercise_1", "gt-wrong", LONGEST_S)
        page.press(page.element("exercise_2", "marimo-button"))
        self._seen.took("check queued to verdict", page.wait_for("exercise_2", "gt-right", LONGEST_S))

    def _knock(self, page: OpenPage) -> None:
        """Try to press a button of one's own page with the neighbour's key."""
        body = json.dumps({"objectIds": [page.element("exercise_1", "marimo-text")], "values": ["stolen"]})
        status = page.post("/api/kernel/set_ui_element_value", body, key=self.neighbour.key)
        if status != 403:
            self._seen.cross_talk.append(f"{self.neighbour.id} could press a button of {self.holder.id} ({status})")

    def _come_back(self) -> None:
        page = self._open(self._lessons[0])
        page.wait_for("exercise_2", lambda shown: marker(self.holder) in shown)
        page.wait_for("exercise_1", lambda shown: number(self._k) in shown)


def mixed_up(server: Workshop, readers: Sequence[ClassReader]) -> Iterator[str]:
    """Every mark of one reader in another's page or file, and every reader whose file lacks their own."""
    marks = {reader.holder.id: (marker(reader.holder), number(k)) for k, reader in enumerate(readers)}
    for reader in readers:
        told = (server.state / "progress" / f"{reader.holder.id}.json").read_text("utf-8")
        shown = "\n".join(text for page in reader.pages for text in page.ever_shown)
        for owner, words in marks.items():
            for word in words:
                if owner == reader.holder.id:
                    if word not in told:
                        yield f"{word} is missing in the file of {owner}"
                elif word in told or word in shown:
                    yield f"{word} of {owner} is in the file or on a page of {reader.holder.id}"
        if "For instructors" in shown:
            yield f"{reader.holder.id} saw the instructor's notes"


class Weighing:
    """Looks at the memory of the server and of all that it started, twice a second, until `over` is called."""

    def __init__(self, server: Workshop) -> None:
        self._pid = server.process.pid
        self._peaks = Memory(0.0, 0.0, 0.0, 0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            server = workers = 0.0
            n_workers = 0
            for process in psutil.Process(self._pid).children(recursive=True):
                try:
                    size_mib, words = process.memory_info().rss / MIB, process.cmdline()
                except psutil.Error:
                    continue
                if "gpututor.workshop.serve" in words:
                    server = size_mib
                else:
                    workers += size_mib
                    n_workers += "gpututor.lab.worker" in words
            so_far = self._peaks
            self._peaks = Memory(
                max(so_far.server_mib, server),
                max(so_far.workers_mib, workers),
                max(so_far.together_mib, server + workers),
                max(so_far.n_workers, n_workers),
            )

    def over(self) -> Memory:
        """The highest that was seen."""
        self._over.set()
        self._thread.join()
        return self._peaks


@dataclass(frozen=True)
class Report:
    """What came of it; times in seconds as (median, 95th percentile, number)."""

    n_readers: int
    n_pages: int
    times_s: dict[str, tuple[float, float, int]]
    memory: Memory
    died: tuple[str, ...]
    cross_talk: tuple[str, ...]
    took_s: float
    load: tuple[float, float]


def summed_up(samples_s: Sequence[float]) -> tuple[float, float, int]:
    """Median, 95th percentile and number.

    >>> summed_up([1.0, 2.0, 3.0])
    (2.0, 3.0, 3)
    """
    ordered = sorted(samples_s)
    at = min(len(ordered) - 1, -(-95 * len(ordered) // 100) - 1)
    return round(statistics.median(ordered), 3), round(ordered[at], 3), len(ordered)


def loaded(server: Workshop, lessons: Sequence[str], say: Callable[[str], None]) -> Report:
    """Let everybody on the server's roster visit it at once; all pages stay open until the last one is done."""
    seen, began_s, load_before = Seen(), time.perf_counter(), os.getloadavg()[0]
    readers = [ClassReader(server, k, seen, lessons) for k in range(len(server.keys.learners))]
    weighing = Weighing(server)
    threads = [threading.Thread(target=reader.visit, daemon=True) for reader in readers]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1.0)
        n_done = sum(not thread.is_alive() for thread in threads)
        say(f"{n_done} of {len(readers)} readers done after {time.perf_counter() - began_s:.0f} s")
    memory = weighing.over()
    pages = [page for reader in readers for page in reader.pages]
    died = [*seen.died, *(f"{page.file}: {page.trouble}" for page in pages if page.trouble)]
    cross_talk = [*seen.cross_talk, *(mixed_up(server, readers) if not seen.died else ())]
    for page in pages:
        page.close()
    times = {what: summed_up(samples) for what, samples in seen.samples_s.items()}
    load = (round(load_before, 1), round(os.getloadavg()[0], 1))
    took_s = round(time.perf_counter() - began_s, 1)
    return Report(len(readers), len(pages), times, memory, tuple(died), tuple(cross_talk), took_s, load)


def words(report: Report) -> str:
    """The report for a reader."""
    lines = [f"{report.n_readers} readers, {report.n_pages} pages open at the end, {report.took_s:.0f} s in all"]
    lines += [
        f"{what:24} median {median:7.2f} s   95th percentile {high:7.2f} s   of {n}"
        for what, (median, high, n) in report.times_s.items()
    ]
    memory = report.memory
    lines.append(
        f"memory, highest: server {memory.server_mib:.0f} MiB, workers and checks {memory.workers_mib:.0f} MiB "
        f"({memory.n_workers} workers), together {memory.together_mib:.0f} MiB"
    )
    lines.append(f"load of the machine {report.load[0]} before, {report.load[1]} after, on {os.cpu_count()} processors")
    lines.append(f"pages that died: {len(report.died)}; marks found where they don't belong: {len(report.cross_talk)}")
    return "\n".join([*lines, *report.died, *report.cross_talk])


@contextmanager
def served(n_readers: int, runners: int | None) -> Iterator[Workshop]:
    """A workshop for so many, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        more = ["--runners", str(runners)] if runners else []
        with workshop(Path(folder), n_readers, *more) as server:
            yield server


def main() -> None:
    """Serve, visit, report; status 1 when a page died or somebody saw what isn't theirs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--readers", type=int, default=30)
    parser.add_argument("--runners", type=int, default=None, help="as of gpututor workshop; cores - 1 by default")
    parser.add_argument("--lessons", type=int, default=3, choices=(1, 2, 3), help="how many each reader opens")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with served(asked.readers, asked.runners) as server:
        report = loaded(server, (GUESSED, *OTHERS)[: asked.lessons], lambda said: print(said, file=sys.stderr))
    print(json.dumps(asdict(report), indent=1) if asked.json else words(report))
    sys.exit(1 if report.died or report.cross_talk else 0)


if __name__ == "__main__":
    main()
