"""Timeline → Ledger: every nanosecond of a window charged to one account."""

from gpututor.ledger.accounts import BUSY, IDLE, MEANING, SLOW, UNFILLED, Account
from gpututor.ledger.book import Ledger, without
from gpututor.ledger.charge import TwoWindows, charge, charge_both, waits
from gpututor.ledger.piece import Piece
from gpututor.ledger.sampled import LONGEST_PERIOD_S, SHORTEST_PERIOD_S, gpu_util_samples
from gpututor.ledger.tally import Tally
from gpututor.ledger.waterfall import Row, rows

__all__ = [
    "BUSY",
    "IDLE",
    "LONGEST_PERIOD_S",
    "MEANING",
    "SHORTEST_PERIOD_S",
    "SLOW",
    "UNFILLED",
    "Account",
    "Ledger",
    "Piece",
    "Row",
    "Tally",
    "TwoWindows",
    "charge",
    "charge_both",
    "gpu_util_samples",
    "rows",
    "waits",
    "without",
]
