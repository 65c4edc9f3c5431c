"""Every run that was measured or simulated, in one SQLite file: what it was, what came out, what changed since."""

from gpututor.history.book import History
from gpututor.history.entry import Entry, Key
from gpututor.history.keeping import log, wanted

__all__ = ["Entry", "History", "Key", "log", "wanted"]
