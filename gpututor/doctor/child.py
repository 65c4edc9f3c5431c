"""The process that asks the driver or torch, and the handle by which its parent hears from it.

The child writes one line of JSON for each stage; when it hangs, crashes or is stopped, the stages before count.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

from gpututor.doctor.finding import Probe

_STARTED_AS = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); from gpututor.doctor.child import main; main(sys.argv[1])"
)


class Child:
    """A probe in a process of its own, from its start until it is asked for, or stopped by the end of a `with`."""

    def __init__(self, probe: Probe, command: list[str] | None = None) -> None:
        self._fields: dict[str, Any] = {}
        self._process = subprocess.Popen(
            command or [sys.executable, "-c", _STARTED_AS, probe.value, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                continue  # a line cut off by a crash
            if isinstance(told, dict):
                self._fields |= told

    def go(self, how: str) -> None:
        """Allow what the child waits for, in one word."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{how}\n".encode())
            self._process.stdin.close()
        except OSError:
            pass  # it has ended already

    def answer(self, limit_s: float) -> tuple[dict[str, Any], str | None]:
        """What it told within the time, and why it ended early; None where it told everything."""
        self._reader.join(limit_s)
        if self._reader.is_alive():
            self.stop()
            return dict(self._fields), f"no answer within {limit_s:.0f} s"
        status = self._process.wait()
        if status == 0:
            return dict(self._fields), None
        return dict(self._fields), f"the process that asked ended {_ended(status)}"

    def stop(self) -> None:
        """End the process, if it hasn't ended."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(1.0)
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass

    def __enter__(self) -> Child:  # noqa: PYI034  typing.Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _ended(status: int) -> str:
    if status < 0:
        try:
            return f"by {signal.Signals(-status).name}"
        except ValueError:
            return f"by signal {-status}"
    return f"with status {status}"


def main(probe: str) -> None:
    """The child's side: ask, and write what comes back to the pipe that was standard output."""
    told_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints while it loads is no answer

    def tell(fields: dict[str, Any]) -> None:
        told_to.write(json.dumps(fields) + "\n")
        told_to.flush()

    if probe == Probe.DRIVER.value:
        from gpututor.doctor.driver_probe import ask_driver

        ask_driver(tell)
    else:
        from gpututor.doctor.torch_probe import ask_torch

        ask_torch(tell, how_far=_line_from_parent)
    told_to.close()
    os._exit(0)  # torch and CUDA take their time to tidy up, and nobody waits for it


def _line_from_parent() -> str:
    return sys.stdin.readline().strip()
