"""The process that serves a class: marimo with our front before it, one lab for all, and a page for the instructor.

Started by `gpututor workshop` as `python -m gpututor.workshop.serve`. marimo's own command runs the server; we add what
stands before it where marimo lets extensions do so (its registry of ASGI middleware).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gpututor import readers
from gpututor.lab.pool import Rules, open_lab
from gpututor.paths import lessons_dir
from gpututor.serving import serve
from gpututor.workshop import identity
from gpututor.workshop.apart import chosen
from gpututor.workshop.board import Board
from gpututor.workshop.front import Front
from gpututor.workshop.keys import Watched
from gpututor.workshop.limits import IDLE_S, limits
from gpututor.workshop.visits import Visits


def prepare(state: Path, n_runners: int, *, limits_only: bool = False) -> None:
    """Make this process one that serves the class whose keys lie in `state`.

    Raises:
        KeysRefused: there are no keys that can be read.
        IsolationMissing: learners' code can't be shut in here, and `limits_only` doesn't ask for that.
    """
    from marimo._server.registry import MIDDLEWARE_REGISTRY
    from starlette.middleware import Middleware

    os.environ["GPUTUTOR_HOME"] = str(state)
    keys, visits = Watched(state), Visits()
    apart, _ = chosen(limits_only=limits_only)
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
    parser.add_argument("--limits-only", action="store_true")
    asked = parser.parse_args()
    prepare(asked.state.resolve(), asked.runners, limits_only=asked.limits_only)
    serve(asked.lessons or lessons_dir(), asked.host, asked.port, headless=True, more=("--log-level", "ERROR"))


if __name__ == "__main__":
    main()
