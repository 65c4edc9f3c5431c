"""The process that serves a class: marimo with our front before it, one lab for all, and a page for the instructor.

Started by `gpututor workshop` as `python -m gpututor.workshop.serve`. marimo's own command runs the server; we add what
stands before it where marimo lets extensions do so (its registry of ASGI middleware).
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

from gpututor import readers
from gpututor.lab.pool import Rules, open_lab
from gpututor.paths import lessons_dir
from gpututor.workshop import identity
from gpututor.workshop.apart import apart
from gpututor.workshop.board import Board
from gpututor.workshop.front import Front
from gpututor.workshop.keys import Watched
from gpututor.workshop.limits import IDLE_S, limits
from gpututor.workshop.visits import Visits

SESSION_TTL_S = 30  # a closed tab's page ends this long after; a short drop of the network survives


def prepare(state: Path, n_runners: int) -> None:
    """Make this process one that serves the class whose keys lie in `state`.

    Raises:
        KeysRefused: there are no keys that can be read.
    """
    from marimo._server.registry import MIDDLEWARE_REGISTRY
    from starlette.middleware import Middleware

    os.environ["GPUTUTOR_HOME"] = str(state)
    keys, visits = Watched(state), Visits()
    lab = open_lab(n_runners, Rules(True, IDLE_S, limits(n_runners).run_bytes, apart))
    readers.ask(identity.of_this_page)
    front = Middleware(Front, keys=keys, visits=visits, board=Board(visits, lab, n_runners))
    MIDDLEWARE_REGISTRY.register("gpututor-workshop", front)


def main() -> None:
    """Serve until asked to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--lessons", type=Path, default=None)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--runners", type=int, required=True)
    asked = parser.parse_args()
    prepare(asked.state.resolve(), asked.runners)
    sys.argv = ["marimo", "--quiet", "--log-level", "ERROR", "run", str(asked.lessons or lessons_dir())]
    sys.argv += [
        "--host",
        asked.host,
        "--port",
        asked.port,
        "--session-ttl",
        str(SESSION_TTL_S),
        "--no-token",
        "--no-sandbox",
        "--headless",
    ]
    runpy.run_module("marimo", run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main()
