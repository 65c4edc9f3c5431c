"""TensorBoard on a folder of event files, as a process of ours that listens on this machine only and ends with us.

`python -m gpututor.board FOLDER SECONDS` is that process. It hears whether its parent lives by a pipe that only the
parent holds open, so it ends with the parent, in whatever way that ends, and after so many seconds in any case.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from gpututor.errors import BoardNotOpened

HOST = "127.0.0.1"
LONGEST_S = 3600.0  # our choice: nobody looks at one run for longer, and a forgotten one holds some 300 MiB
OPENS_WITHIN_S = 60.0  # its first import on a slow disk
ENDS_WITHIN_S = 5.0
LAST_WORDS = 400  # characters of what it said, in an error
GET_IT = 'TensorBoard is not installed here; `pip install "gpututor[tensorboard]"` gets it.'
_ADDRESS = re.compile(r"at (http://\S+)")
_ROOT = Path(__file__).resolve().parent.parent


def why_not() -> str:
    """Empty where TensorBoard can be opened, else one sentence on how to get it."""
    return "" if find_spec("tensorboard") is not None else GET_IT


def command(folder: Path) -> str:
    """What opens the folder from a terminal."""
    return f'tensorboard --logdir "{folder}" --host {HOST}'


class Board:
    """One TensorBoard on `folder`. It runs from the start on; `end` it, or let it end with this process.

    Raises:
        BoardNotOpened: TensorBoard is not installed, or no process can be started.
    """

    def __init__(self, folder: Path, *, seconds: float = LONGEST_S) -> None:
        self.folder = folder
        self._said: list[str] = []
        self._address: str | None = None
        self._told = threading.Event()  # it said where it listens, or ended
        if why_not():
            raise BoardNotOpened(why_not().rstrip("."))
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gpututor.board", str(folder), f"{seconds:g}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
            )
        except OSError as error:
            raise BoardNotOpened(f"TensorBoard can't be started ({error.strerror or error})") from error
        self._thread = threading.Thread(target=self._hear, name="gpututor-board", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """Whether its process lives."""
        return self._process.poll() is None

    def address(self, within_s: float = OPENS_WITHIN_S) -> str:
        """Where a browser on this machine finds it, as soon as it listens.

        Raises:
            BoardNotOpened: it ended first, or said nothing for so long and was ended.
        """
        self._told.wait(within_s)
        if self._address is not None and self.is_open:
            return self._address
        said = " ".join(self._said)[-LAST_WORDS:].strip() or "nothing"
        what = "said nothing of where it listens" if self.is_open else "ended"
        self.end()
        raise BoardNotOpened(f"TensorBoard {what}; its last words: {said}")

    def end(self) -> None:
        """End its process; nothing happens where it has ended."""
        stdin, stderr = self._process.stdin, self._process.stderr
        assert stdin is not None
        assert stderr is not None
        stdin.close()  # which it hears
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join(ENDS_WITHIN_S)
        stderr.close()

    def _hear(self) -> None:
        """Read on for as long as it speaks, so that it never waits for a full pipe."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            text = line.decode(errors="replace").rstrip()
            found = _ADDRESS.search(text)
            if found is not None and self._address is None:
                self._address = found[1]
                self._told.set()
            del self._said[:-20]
            self._said.append(text)
        self._told.set()


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(1):
        continue
    os._exit(0)


def main() -> None:
    """Serve the folder that the command line names, for at most so many seconds."""
    folder, seconds = sys.argv[1], float(sys.argv[2])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit = threading.Timer(seconds, os._exit, (0,))
    limit.daemon = True
    limit.start()
    # its faster reader is a process of its own, with a socket of its own
    sys.argv = ["tensorboard", "--logdir", folder, "--host", HOST, "--port", "0", "--load_fast", "false"]
    import_module("tensorboard.main").run_main()


if __name__ == "__main__":
    main()
