"""The lines at the foot of the terminal while a script runs, with what the script prints above them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from gpututor.run.request import Request
from gpututor.text import duration, percent


def progress_text(request: Request, told: dict[str, Any], held_bytes: int | None, seconds: float, card: str) -> Text:
    """How far a run is, in one or two lines."""
    if not told:
        return Text(f"starting {request.name} on the {card} …", style="dim")
    total = f" of {request.n_steps + request.skip}" if request.n_steps else ""
    parts = [f"step {told['n_steps']:,}{total}" if told["n_steps"] else "before the first step"]
    if told["loss"] is not None:
        parts.append(f"loss {told['loss']:.4g}")
    if told["step_ns"]:
        parts.append(f"{duration(told['step_ns'])} a step")
    if told["busy_share"] is not None:
        parts.append(f"GPU busy {percent(told['busy_share'])}")
    here = [f"{seconds:.0f} s"]
    if held_bytes:
        here.append(f"{held_bytes / 2**30:.1f} GiB")
    text = Text.assemble((f"{card}  ", "bold"), " · ".join(parts), ("   here: " + ", ".join(here), "dim"))
    return text if told["stopped"] is None else Text("stopping … ", style="bold") + text


class Display:
    """Shows progress on a terminal; elsewhere it shows nothing and the script's output goes its own way."""

    def __init__(self, request: Request, card: str, *, json: bool) -> None:
        self._request, self._card = request, card
        self.console = Console(stderr=json, highlight=False)
        self._began_s = time.monotonic()
        self._live: Live | None = None
        if self.console.is_terminal and not json:
            self._live = Live(console=self.console, refresh_per_second=8, transient=True)
        self._partial: dict[int, str] = {}
        self._json = json

    def streams(self) -> dict[str, Any]:
        """Where the script's two outputs go: through here on a terminal; with --json both to standard error."""
        if self._live is not None:
            return {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return {"stdout": sys.stderr} if self._json else {}

    def show(self, told: dict[str, Any], held_bytes: int | None) -> None:
        """Draw the progress anew."""
        if self._live is None:
            return
        unfinished = [Text(line) for line in self._partial.values() if line]
        line = progress_text(self._request, told, held_bytes, time.monotonic() - self._began_s, self._card)
        self._live.update(Text("\n").join([*unfinished, line]))

    def read(self, pipe: IO[bytes]) -> threading.Thread:
        """Print what comes through `pipe` above the progress, line by line."""
        reader = threading.Thread(target=self._copy, args=(pipe,), daemon=True)
        reader.start()
        return reader

    def _copy(self, pipe: IO[bytes]) -> None:
        import codecs

        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        key, rest = id(pipe), ""
        read: Callable[[int], bytes] = pipe.read1  # type: ignore[attr-defined]
        while data := read(1 << 16):
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            if lines:
                shown = [line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines]
                self.console.print(Text.from_ansi("\n".join(shown)), soft_wrap=True)
            rest = rest.rsplit("\r", 1)[-1] if not rest.endswith("\r") else rest
            self._partial[key] = rest.strip("\r").rsplit("\r", 1)[-1]
        self._partial.pop(key, None)
        if rest:
            self.console.print(Text.from_ansi(rest), soft_wrap=True)

    def __enter__(self) -> Display:  # noqa: PYI034  typing.Self came with Python 3.11
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.update(Text(""))
            self._live.__exit__(kind, error, trace)
