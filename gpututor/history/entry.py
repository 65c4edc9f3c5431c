"""One run as the history keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gpututor.ledger import Account, Ledger


class Key(NamedTuple):
    """What two runs must have in common to be repeats of each other."""

    kind: str
    name: str
    origin: str
    machine: str
    configuration: str  # the configuration's fingerprint


@dataclass(frozen=True, slots=True)
class Entry:
    """A run: what it was, and what came out. A figure that isn't known is None, with the reason in `reasons`.

    `kind` is the command or call ("run", "job", "measure"), `name` the script, job or loop. `configuration` is what
    makes another run a different one; `versions` and `commit` are what may have changed between two of the same.
    `accounts_ns` are nanoseconds a step by account, those that have any. `busy_share` is the ledger's, and
    `busy_basis` says what it rests on. `number` and `at` (UTC, ISO 8601) are given by the history.
    """

    kind: str
    name: str
    origin: str  # "measured", "recorded", "simulated"
    machine: str | None
    card: str | None
    configuration: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    n_steps: int = 0
    step_ns: float | None = None
    busy_share: float | None = None
    busy_basis: str = ""
    accounts_ns: Mapping[Account, float] = field(default_factory=dict)
    usd_per_hour: float | None = None
    usd_per_1000_steps: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    number: int | None = None
    at: str = ""

    @property
    def key(self) -> Key:
        """What its repeats have in common."""
        text = json.dumps(dict(self.configuration), sort_keys=True, default=str)
        fingerprint = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return Key(self.kind, self.name, self.origin, self.machine or "", fingerprint)

    @property
    def title(self) -> str:
        """The run in a few words."""
        where = self.card or self.machine or "CPU"
        return f"{self.name} on {'a simulated ' if self.origin == 'simulated' else ''}{where}"


def accounts_a_step(ledger: Ledger) -> dict[Account, float]:
    """Nanoseconds a step by account, of the whole window where there are no steps; accounts without time left out."""
    n = ledger.n_steps or 1
    return {account: ns / n for account, ns in ledger.charged_ns.items() if ns}
