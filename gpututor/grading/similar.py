"""Pairs of answers in code that share more than the task explains: for somebody to look at, not a verdict.

Code is cut into tokens; comments, names, numbers and layout are taken out, and runs of tokens are hashed. Of each
window of hashes the least is kept (winnowing: Schleimer, Wilkerson and Aiken 2003, SIGMOD, "Local algorithms for
document fingerprinting"). What the starter holds, or many in the class have, is no sign of anything and is left out.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import keyword
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

RUN, WINDOW = 9, 4  # tokens a hash, hashes a window: our choice; any run of 12 tokens that two share is seen
LEAST, THRESHOLD_SHARE = 6, 0.7  # of an answer's own fingerprints, our choice: fewer, or a smaller share, is chance
COMMON_SHARE, COMMON_LEAST = 0.2, 4  # what more of the class have than this is how one writes it
MAX_CODE = 2**18  # signs of an answer that are looked at
MOST_LINES = 12  # of each answer, shown

_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
_KNOWN = set(keyword.kwlist) | set(dir(builtins))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one exercise, the share of the shorter one's own fingerprints in the other, and the lines."""

    number: str
    ids: tuple[str, str]
    share: float
    n_shared: int
    lines: tuple[str, str]

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        told = {"number": self.number, "ids": list(self.ids), "share": self.share}
        return told | {"n_shared": self.n_shared, "lines": list(self.lines)}


def tokens(code: str) -> list[tuple[str, int]]:
    """The tokens that tell how code works, each with its line. Code that is no Python is cut at its blanks.

    >>> [word for word, _ in tokens("total = x.sum()  # all")]
    ['v', '=', 'v', '.', 'sum', '(', ')']
    """
    try:
        return list(_tokens(code))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return [(word, k) for k, line in enumerate(code.splitlines(), 1) for word in line.partition("#")[0].split()]


def _tokens(code: str) -> Iterator[tuple[str, int]]:
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in _LAYOUT or not token.string:
            continue
        word = token.string
        if token.type == tokenize.STRING:
            word = "''"
        elif token.type == tokenize.NUMBER:
            word = "0"
        elif token.type == tokenize.NAME and word not in _KNOWN and before != ".":
            word = "v"
        yield word, token.start[0]
        before = word


def fingerprints(code: str) -> dict[int, tuple[int, int]]:
    """The kept hashes of code, each with the first and last line of the run it stands for."""
    cut = tokens(code)
    hashed = [
        (_hash([word for word, _ in cut[k : k + RUN]]), cut[k][1], cut[k + RUN - 1][1])
        for k in range(len(cut) - RUN + 1)
    ]
    kept: dict[int, tuple[int, int]] = {}
    for k in range(max(1, len(hashed) - WINDOW + 1)):
        window = hashed[k : k + WINDOW]
        if window:
            value, first, last = min(window)
            kept.setdefault(value, (first, last))
    return kept


def _hash(words: Sequence[str]) -> int:
    return int.from_bytes(hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=8).digest(), "big")


def pairs(number: str, starter: str, answers: Mapping[str, str]) -> list[Pair]:
    """The pairs of answers, by learner's id, that share much; the most alike first."""
    answers = {learner_id: code[:MAX_CODE] for learner_id, code in answers.items()}
    of_starter = fingerprints(starter)
    prints = {learner_id: fingerprints(code) for learner_id, code in sorted(answers.items())}
    spread = Counter(value for each in prints.values() for value in each)
    most = max(COMMON_LEAST, COMMON_SHARE * len(prints))
    own = {
        learner_id: {value for value in each if value not in of_starter and spread[value] <= most}
        for learner_id, each in prints.items()
    }
    having: dict[int, list[str]] = defaultdict(list)
    for learner_id, values in own.items():
        for value in values:
            having[value].append(learner_id)
    shared = Counter(pair for ids in having.values() for pair in combinations(sorted(ids), 2))
    found = []
    for (a, b), n_shared in shared.items():
        least = min(len(own[a]), len(own[b]))
        if least >= LEAST and n_shared >= THRESHOLD_SHARE * least:
            both = own[a] & own[b]
            lines = (_lines(answers[a], prints[a], both), _lines(answers[b], prints[b], both))
            found.append(Pair(number, (a, b), round(n_shared / least, 3), n_shared, lines))
    return sorted(found, key=lambda pair: (-pair.share, -pair.n_shared, pair.ids))


def _lines(code: str, prints: Mapping[int, tuple[int, int]], shared: set[int]) -> str:
    """The lines that hold what is shared."""
    numbers = sorted({k for value in shared for k in range(prints[value][0], prints[value][1] + 1)})
    lines = code.splitlines()
    shown = [lines[k - 1][:160] for k in numbers[:MOST_LINES] if k <= len(lines)]
    return "\n".join(shown).encode("utf-8", "replace").decode("utf-8")
