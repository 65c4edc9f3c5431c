"""A stretch of idle time."""

from __future__ import annotations

from typing import NamedTuple

from gpututor.ledger.accounts import Account


class Piece(NamedTuple):
    """A stretch of idle time and the account it belongs to."""

    start_ns: int
    end_ns: int
    account: Account
