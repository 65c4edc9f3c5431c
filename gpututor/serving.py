"""marimo's server as every way to serve the course runs it: in this process, with threads that parse one at a time.

`gpututor lessons` starts it as `python -m gpututor.serving`; the workshop puts its front before it first.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from gpututor.parsing import parse_in_turn

SESSION_TTL_S = 30  # a closed tab's run ends this long after; a short drop of the network survives


def serve(folder: Path, host: str, port: str, *, headless: bool, more: Sequence[str] = ()) -> None:
    """Serve the notebooks in a folder until asked to end; `more` are options of marimo before its command."""
    parse_in_turn()
    sys.argv = ["marimo", "--quiet", *more, "run", str(folder), "--host", host, "--port", port]
    sys.argv += [
        "--session-ttl",
        str(SESSION_TTL_S),
        "--no-token",
        "--no-sandbox",
        *(["--headless"] if headless else []),
    ]
    runpy.run_module("marimo", run_name="__main__", alter_sys=False)


def main() -> None:
    """Serve what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--headless", action="store_true")
    asked = parser.parse_args()
    serve(asked.folder, asked.host, asked.port, headless=asked.headless)


if __name__ == "__main__":
    main()
