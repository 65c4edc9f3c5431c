"""One learner's sandbox: started at the first call, shared by those after it, started anew when one has spoiled it."""

from __future__ import annotations

from types import TracebackType
from typing import Any, final

from gpututor.errors import SandboxFailed
from gpututor.lab.limits import Limits
from gpututor.lab.outlets import Watched
from gpututor.lab.sandbox import Sandbox
from gpututor.lab.sandbox_view import Way


@final
class OneSandbox:
    """Runs one learner's calls in one sandbox.

    `n_started` counts sandboxes, `keepers_ended` those whose zygote was killed.
    """

    def __init__(self, way: Way) -> None:
        self._way = way
        self._sandbox: Sandbox | None = None
        self.n_started = 0
        self.keepers_ended = 0

    def __enter__(self) -> OneSandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    @property
    def note(self) -> str | None:
        """One sentence for a report where the learner's code ended the process that starts calls; else None."""
        if not self.keepers_ended:
            return None
        times = "once" if self.keepers_ended == 1 else f"{self.keepers_ended} times"
        return f"The code ended the process that starts its calls, {times}; the calls after it ran in a new sandbox."

    def run(self, request: dict[str, Any], limits: Limits, card: int | None = None) -> Watched:
        """What came of one request.

        Raises:
            SandboxFailed: no sandbox could be started.
        """
        try:
            return self._run(request, limits, card)
        except SandboxFailed:
            self._end()  # it may have been killed between two calls, by the system for want of memory
            return self._run(request, limits, card)
        except BaseException:
            self._end()
            raise

    def _run(self, request: dict[str, Any], limits: Limits, card: int | None) -> Watched:
        if self._sandbox is None:
            self._sandbox = Sandbox(self._way)
            self.n_started += 1
        if request["harness"] is not None:
            self._sandbox.load()
        watched, as_it_was = self._sandbox.call(request, limits, card)
        self.keepers_ended += watched.cut == "keeper"
        if not as_it_was:
            self._end()
        return watched

    def _end(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
