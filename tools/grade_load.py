"""Grade made-up classes in every way there is, compare the results' bytes, and say how quick it was.

    python -m tools.grade_load -n 50 -n 200 --lessons 1-10

Each size is graded on one process, on two, on two and killed half-way, and on a dask cluster (where distributed is
installed) of three workers with one killed half-way; `--way two` asks for that one alone, to see how it grows. Ends
with status 1 where any two results differ.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gpututor.grading import classroom, grade  # noqa: E402

KILLED_AT_SHARE = 0.4  # of what there is to judge
N_WORKERS = 3
WAYS = ("one", "two", "killed", "dask")


def command(folder: Path, out: str, isolation: str, *more: str) -> list[str]:
    """The command that grades into `folder`/`out`."""
    told = [sys.executable, "-m", "gpututor", "grade", str(folder / "submissions"), "--class", str(folder / "class")]
    return [*told, "--out", str(folder / out), "--isolation", isolation, *more]


def digest(out: Path) -> str:
    """SHA-256 over the names and bytes of all results; what a run took is none of them."""
    found = hashlib.sha256()
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out)
        if path.is_file() and name.parts[0] not in (grade.WORK, grade.RUN):
            found.update(name.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def plainly(asked: Sequence[str]) -> None:
    """Run to the end."""
    subprocess.run(asked, check=True, stdout=subprocess.DEVNULL)


def half_way(
    asked: Sequence[str], work: Path, n_verdicts: int, then: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    """Start, wait until part of the verdicts are there, and do `then` to the process."""
    running = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while running.poll() is None and len(list(work.glob("*.json"))) < KILLED_AT_SHARE * n_verdicts:
        time.sleep(0.05)
    then(running)
    running.wait()


def n_verdicts(folder: Path) -> int:
    """How many verdicts there are to reach, from the first way that was through."""
    return max(len(list((folder / way / grade.WORK).glob("*.json"))) for way in ("one", "two"))


def grade_each_way(
    n: int, lessons: str, isolation: str, scratch: Path, ways: Sequence[str] = WAYS
) -> list[dict[str, Any]]:
    """One row for each way: its name, what it took, and the digest of its results."""
    synthetic = importlib.import_module("tests.grading.synthetic")
    folder = scratch / f"n{n}"
    synthetic.make(folder, n, classroom.lessons_in(lessons))
    asked = {"lessons": lessons, "late": "10 % a day, 3 days"}
    classroom.new(folder / "class", folder / "roster.csv", synthetic.DEADLINE, synthetic.TIMEZONE, **asked)
    rows = []

    def note(way: str, out: str, began_s: float) -> None:
        run = json.loads((folder / out / grade.RUN).read_text())
        wall_s = round(time.monotonic() - began_s, 1)
        rows.append({"n": n, "way": way, "wall_s": wall_s, "digest": digest(folder / out)} | run)
        print(line(rows[-1]), flush=True)

    for way, n_processes in (("one", 1), ("two", 2)):
        if way in ways:
            began_s = time.monotonic()
            plainly(command(folder, way, isolation, "-j", str(n_processes)))
            note(f"-j {n_processes}", way, began_s)
    if "killed" in ways:
        began_s = time.monotonic()
        killed = command(folder, "killed", isolation, "-j", "2")
        half_way(killed, folder / "killed" / grade.WORK, n_verdicts(folder), lambda running: running.kill())
        plainly(killed)
        note("-j 2, killed", "killed", began_s)
    if "dask" in ways and find_spec("distributed"):
        cluster = importlib.import_module("tests.grading.cluster")
        with cluster.running(folder, N_WORKERS) as (address, workers):
            began_s = time.monotonic()
            on_cluster = command(folder, "dask", isolation, "--dask", address)
            half_way(on_cluster, folder / "dask" / grade.WORK, n_verdicts(folder), lambda running: workers[0].kill())
            note(f"dask, {N_WORKERS} workers, 1 killed", "dask", began_s)
    return rows


def line(row: dict[str, Any]) -> str:
    """A row for people. Of a run that was killed only the second part is in its rate."""
    rate, each = row["submissions_per_s"], row["answers_per_s"]
    per_core = rate / row["processes"] if rate and row["processes"] else None
    told = [f"{row['n']:>5}", f"{row['way']:<26}", f"{row['wall_s']:>8.1f} s", f"{row['judged']:>6} judged"]
    told.append(f"{rate:>7.2f} submissions/s" if rate else " " * 21)
    told.append(f"{per_core:>7.2f} per core" if per_core else " " * 16)
    told.append(f"{each:>7.2f} answers/s" if each else " " * 17)
    return "  ".join([*told, f"again {row['tried_again']}", row["digest"][:12]])


def main() -> int:
    """Grade every size asked for; 0 where all ways of each gave the same bytes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--n", type=int, action="append", help="submissions; may be repeated (default 12)")
    parser.add_argument("--lessons", default="1-10")
    parser.add_argument("--isolation", default="bubblewrap", choices=["bubblewrap", "limits"])
    parser.add_argument("--json", action="store_true", help="print the rows as JSON at the end")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this way; may be repeated")
    told = parser.parse_args()
    ways = told.way or WAYS
    if not {"one", "two"} & set(ways):
        parser.error("--way killed and dask are compared with one or two; ask for one of these as well")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="gpututor-load-") as scratch:
        for n in told.n or [12]:
            rows += grade_each_way(n, told.lessons, told.isolation, Path(scratch), ways)
    alike = all(len({row["digest"] for row in rows if row["n"] == n}) == 1 for n in told.n or [12])
    print("All bytes are alike." if alike else "Results differ.")
    if told.json:
        print(json.dumps(rows, indent=1))
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
