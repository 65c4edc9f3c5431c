"""When a run shall stop, and how that is said to the script."""

from __future__ import annotations

from dataclasses import dataclass

GRACE_S = 10.0
"""Our choice: what a script gets for its `finally` blocks, such as saving a small checkpoint, once it was stopped."""


class StopRun(BaseException):
    """Raised in the script when the run shall end here; its `finally` blocks run.

    Not an Exception, so that a script's own `except Exception` lets it through.
    """


@dataclass(slots=True)
class Limits:
    """`n_steps` kept steps after `skip` others, and `seconds` of this machine's time; None is no limit."""

    n_steps: int | None
    skip: int
    seconds: float | None

    def reached(self, n_marks: int, seconds: float) -> str | None:
        """Why the run stops after `n_marks` steps and so many seconds, or None."""
        if self.n_steps is not None and n_marks >= self.skip + self.n_steps:
            return f"after {self.n_steps} step{'s' if self.n_steps > 1 else ''}, as asked"
        if self.seconds is not None and seconds >= self.seconds:
            return f"after {self.seconds:g} s, as asked"
        return None
