"""What an experiment gets to say how far it is, and to hear that it should stop.

An experiment is a function `f(progress, **params)`. It calls `progress.tick` once a step; that is
all it has to do to be seen, stopped and kept within its time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpututor.errors import ExperimentError


class Stopped(BaseException):
    """Raised by `Progress.tick` when the reader asked to stop; an experiment need not catch it.

    Not an `Exception`, so that an experiment's own `except Exception` lets it through.
    """


def _nobody_listens(k: int, n: int, note: str, partial: object) -> None:
    return None


def _never() -> bool:
    return False


class Progress:
    """Carries an experiment's progress out and the wish to stop in. Without arguments nobody listens."""

    def __init__(
        self,
        tell: Callable[[int, int, str, object], None] = _nobody_listens,
        stop_asked: Callable[[], bool] = _never,
        results_dir: Path | None = None,
    ) -> None:
        self._tell, self._stop_asked, self._results_dir = tell, stop_asked, results_dir
        self.partial: object = None
        self.stop_was_seen = False

    @property
    def results_dir(self) -> Path:
        """The folder for files that outlive the run.

        Raises:
            ExperimentError: whoever started the run named no folder.
        """
        if self._results_dir is None:
            raise ExperimentError(
                "the experiment wants to write a file, but the run was started without a results folder; "
                "pass results_dir to the run."
            )
        return self._results_dir

    @property
    def should_stop(self) -> bool:
        """True once the reader asked to stop; for an experiment that ends its own loop and hands back what it has."""
        self.stop_was_seen = self.stop_was_seen or self._stop_asked()
        return self.stop_was_seen

    def tick(self, k: int, n: int, note: str = "", partial: object = None) -> None:
        """Say that `k` of `n` steps are done; `partial` is what a stopped run hands back.

        Cheap enough for every step: the page hears of it five times a second at most.
        `partial` is JSON data and may go on growing after the call.

        Raises:
            Stopped: the reader asked to stop; let it pass.
        """
        if partial is not None:
            self.partial = partial
        self._tell(k, n, note, partial)
        if self.should_stop:
            raise Stopped
