"""Damage traces at random, for as long as you like, and see that each is explained or refused in one sentence.

    python -m tools.fuzz_traces --minutes 30 [FILE …]

Bytes are flipped, cut out, doubled and moved; fields of records are removed, retyped and set to odd values; files are
packed, cut and joined. Whatever comes of it must end in a report or a `TimelineError`, in 20 seconds and 3 GiB. What
does not is kept under the name that is printed, and the status is 1.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpututor.errors import TimelineError
from gpututor.explain import explain
from gpututor.explain.report_json import document
from tests.explain.written import JobTrace

LONGEST_S = 20
MOST_BYTES = 3 * 2**30
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 10**30, 1e308, -0.5, "", "x", "N/A", "NaN", [], {}, [1, 2, 3], {"a": []}, "\ud800", 17,
)  # fmt: skip
FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id")
ARGS = ("device", "stream", "correlation", "grid", "block", "bytes", "kind", "registers per thread", "gpututor")
TOKENS = (b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\x00", b"\xff", b"NaN", b"N/A", b"},{", b'"traceEvents"')


class TooLong(Exception):
    """It took more than `LONGEST_S`."""


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TooLong


def bytes_damaged(rng: random.Random, text: bytes) -> bytes:
    """The text with some bytes other than they were."""
    for _ in range(rng.choice((1, 1, 2, 5, 40))):
        if not text:
            break
        at, n = rng.randrange(len(text)), rng.choice((1, 2, 10, 1000, len(text) // 3))
        text = rng.choice(
            (
                text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :],
                text[:at] + text[at + n :],
                text[:at] + rng.choice(TOKENS) * rng.choice((1, 1, 3, 2000)) + text[at:],
                text[:at] + text[at : at + n] + text[at:],
                text[:at],
                text[at:],
            )
        )
    return text


def fields_damaged(rng: random.Random, found: Any) -> Any:
    """The document with some fields of some records other than they were."""
    events = found["traceEvents"] if isinstance(found, dict) else found
    for _ in range(rng.choice((1, 3, 30, 300))):
        k = rng.randrange(len(events))
        event = events[k]
        if not isinstance(event, dict):
            continue
        event = events[k] = json.loads(json.dumps(event))
        inner = event.get("args") if rng.random() < 0.5 and isinstance(event.get("args"), dict) else event
        name = rng.choice(ARGS if inner is not event else FIELDS)
        if rng.random() < 0.2:
            inner.pop(name, None)
        else:
            inner[name] = rng.choice(ODD)
        if rng.random() < 0.1:
            events[k] = rng.choice(ODD)
    if isinstance(found, dict) and rng.random() < 0.2:
        found[rng.choice(("deviceProperties", "gpututor", "schemaVersion", "distributedInfo"))] = rng.choice(ODD)
    return found


def damaged(rng: random.Random, text: bytes) -> bytes:
    """One damaged file."""
    if rng.random() < 0.5:
        text = json.dumps(fields_damaged(rng, json.loads(text))).encode()
    if rng.random() < 0.6:
        text = bytes_damaged(rng, text)
    if rng.random() < 0.3:
        text = gzip.compress(text, 1)
        text = bytes_damaged(rng, text) if rng.random() < 0.5 else text
    return text


def sources(paths: list[Path]) -> list[bytes]:
    """Undamaged texts: the files named, else traces written here."""
    if not paths:
        jobs = (JobTrace(6), JobTrace(30, optimizer_marks=True, talk_us=50, host_works=True))
        return [json.dumps({"schemaVersion": 1, "traceEvents": job.events}).encode() for job in jobs]
    raw = [path.read_bytes() for path in paths]
    return [gzip.decompress(each) if each[:2] == b"\x1f\x8b" else each for each in raw]


def main() -> int:
    """Go on until the time is over; 0 where nothing but reports and sentences came."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzzed"), help="folder for files that aren't handled")
    told = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    texts, counts, until_s = sources(told.files), Counter[str](), time.monotonic() + 60 * told.minutes
    with tempfile.TemporaryDirectory() as place:
        path, number = Path(place) / "trace.json", told.seed
        while time.monotonic() < until_s:
            number += 1
            rng = random.Random(number)
            path.write_bytes(damaged(rng, rng.choice(texts)))
            counts[came_of(path)] += 1
            worst = [name for name in counts if name not in ("explained", "refused")]
            if worst:
                told.keep.mkdir(exist_ok=True)
                kept = told.keep / f"{number}.json"
                kept.write_bytes(path.read_bytes())
                print(f"{kept}: {worst[0]}", flush=True)
                return 1
    print(f"{counts.total():,} files in {told.minutes:g} minutes: {dict(counts)}; peak {_peak_mib():.0f} MiB")
    return 0


def came_of(path: Path) -> str:
    """What came of a file: "explained", "refused", or what went wrong."""
    signal.alarm(LONGEST_S)
    try:
        json.dumps(document(explain(path)), allow_nan=False)
    except TimelineError as error:
        return "refused" if "\n" not in str(error) else f"a sentence of several lines: {error}"
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return "explained"


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
