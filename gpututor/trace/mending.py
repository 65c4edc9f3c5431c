"""Records that aren't JSON, made readable where it is certain what they mean; the others are counted and left out.

Profilers and what lay between them and the file have written: control characters in strings, NaN and bare N/A,
backslashes of Windows paths (pytorch issue 98432), and quotes within quotes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping

from gpututor.trace.exact import load_json

BETWEEN = re.compile(r"\}\s*,\s*(?=\{)")
MOST_PARTS = 32  # of one record that has "},{" within it
MOST_PUT_TOGETHER = 100  # records lost, after which the file is garbled and parts aren't put together any more
BARE = re.compile(r"(:\s*)(?:N/A|n/a|None|undefined|-?nan|-?NaN|-?inf|-?Infinity)(?=\s*[,}\]])")
STRAY_BACKSLASH = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
BACKSLASH = re.compile(r'\\(["\\])?')
NAME = re.compile(r'("name"\s*:\s*")(.*?)("\s*,\s*"(?:cat|ph|pid|tid|ts|dur|args|id)"\s*:|"\s*\})', re.DOTALL)

MENDED = "records that were no JSON (quotes, backslashes or bare words) mended"
LOST = "records that can't be read left out"
LETTERS = "letters that were not UTF-8 show as \N{REPLACEMENT CHARACTER}"


def text_of(raw: bytes, found: Counter[str]) -> str:
    """The text, with what isn't UTF-8 replaced."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        text = raw.decode(errors="replace")
        found[LETTERS] += text.count("\N{REPLACEMENT CHARACTER}")
        return text


def one_by_one(text: str, found: Counter[str]) -> list[object]:
    """The records in a text of records with commas between them, each read by itself."""
    pieces = BETWEEN.split(text)
    pieces[:-1] = [piece + "}" for piece in pieces[:-1]]
    records: list[object] = []
    k = 0
    while k < len(pieces):
        most = MOST_PARTS if found[LOST] < MOST_PUT_TOGETHER else 1
        for n in range(1, min(most, len(pieces) - k) + 1):
            whole = ",".join(pieces[k : k + n])
            if whole.count("{") > whole.count("}"):
                continue
            record = _read(whole, found)
            if record is not None:
                records.append(record)
                k += n
                break
        else:
            found[LOST] += 1
            k += 1
    return records


def _read(text: str, found: Counter[str]) -> object | None:
    """A record, mended if need be; None where that is no use."""
    record = _loaded(text)
    if record is None:
        # with one that can't stand in JSON, the others weren't meant as JSON either: C:\temp has no tab in it
        stray = STRAY_BACKSLASH.search(text)
        doubled = BACKSLASH.sub(lambda m: m[0] if m[1] else "\\\\", text) if stray else text
        record = _loaded(BARE.sub(r"\1null", doubled))
        if record is None:
            record = _loaded(NAME.sub(lambda m: m[1] + json.dumps(m[2])[1:-1] + m[3], BARE.sub(r"\1null", text), 1))
        found[MENDED] += record is not None
    return record


def _loaded(text: str) -> object | None:
    try:
        record = load_json(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, Mapping) else None
