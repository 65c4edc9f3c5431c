"""A page's TensorBoard: a button that opens it on a run's own event files, its link, and a button that ends it.

Make a `BoardPanel` in a cell that never runs again, as with a `Runner`, and bind its getter to a name of its own. It is
a process on this machine, which ends with the button, with the page, and after an hour in any case.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal

import marimo as mo

from gpututor import readers
from gpututor.board import Board, command, why_not
from gpututor.errors import BoardNotOpened
from gpututor.page.parts import escape, html, markup
from gpututor.page.runner import LOOK_EVERY_S

ELSEWHERE = "These pages come from another computer, and TensorBoard answers only to the one it runs on."


@dataclass(frozen=True, slots=True)
class Opened:
    """How a page's TensorBoard stands; `text` is its address where it is open, or what went wrong."""

    phase: Literal["closed", "opening", "open", "failed"] = "closed"
    text: str = ""


class BoardPanel:
    """At most one TensorBoard for one page, on a thread of the page."""

    def __init__(self) -> None:
        self.get_state, self._set_state = mo.state(Opened(), allow_self_loops=True)
        self._orders: SimpleQueue[Path | None] = SimpleQueue()
        self._kernel = threading.current_thread()  # ends with the page (see `Runner`)
        self._thread = mo.Thread(target=self._work, daemon=True)
        self._thread.start()

    def open(self, folder: Path) -> None:
        """Open it on a folder and return at once; the state says how far it is."""
        self._set_state(Opened("opening"))
        self._orders.put(folder)

    def end(self) -> None:
        """End it; the state changes when it has."""
        self._orders.put(None)

    @property
    def closed(self) -> bool:
        """Whether the page is gone."""
        return self._thread.should_exit or not self._kernel.is_alive()

    def _work(self) -> None:
        board: Board | None = None
        try:
            while not self.closed:
                try:
                    folder = self._orders.get(timeout=LOOK_EVERY_S)
                except Empty:
                    if board is not None and not board.is_open:
                        self._over(board)
                        board = None
                    continue
                if board is not None:
                    self._over(board)
                    board = None
                if folder is not None:
                    board = self._opened(folder)
        finally:
            if board is not None:
                board.end()

    def _opened(self, folder: Path) -> Board | None:
        try:
            board = Board(folder)
            self._tell(Opened("open", board.address()))
        except BoardNotOpened as error:
            self._tell(Opened("failed", f"{error}."))
            return None
        return board

    def _over(self, board: Board) -> None:
        board.end()
        self._tell(Opened())

    def _tell(self, state: Opened) -> None:
        if not self.closed:
            self._set_state(state)

    def buttons(self, state: Opened, folder: Path | None) -> list[mo.ui.button]:
        """Open, or End while it is there; none where it can't be opened here."""
        if folder is None or why_not() or readers.known():
            return []
        if state.phase == "open":
            return [mo.ui.button(label="End TensorBoard", on_click=lambda _: self.end())]
        return [
            mo.ui.button(
                label="Open TensorBoard on this run",
                disabled=state.phase == "opening",
                on_click=lambda _: self.open(folder),
            )
        ]

    def section(self, buttons: Sequence[object], state: Opened, folder: Path | None) -> mo.Html:
        """The buttons, and below them the link or what went wrong; and what opens the folder from a terminal."""
        if folder is None:
            return html('<p class="gt gt-note">This run left no event files; run it again.</p>')
        row = markup(mo.hstack(list(buttons), justify="start", gap=0.5, wrap=True)) if buttons else ""
        own = f"<details><summary>From a terminal</summary><pre><code>{escape(command(folder))}</code></pre></details>"
        return html(f'<section class="gt gt-card gt-board">{row}{_said(state)}{own}</section>')


def _said(state: Opened) -> str:
    """One line on how it stands, as HTML."""
    missing = why_not()
    if readers.known() or missing:
        return f'<p class="gt-note">{escape(ELSEWHERE if readers.known() else missing)}</p>'
    if state.phase == "opening":
        return '<p class="gt-note" role="status">It starts; that takes some seconds.</p>'
    if state.phase == "failed":
        return f'<p class="gt-failed" role="alert">{escape(state.text)}</p>'
    if state.phase == "open":
        link = f'<a href="{escape(state.text)}" target="_blank" rel="noopener">{escape(state.text)}</a>'
        return f'<p class="gt-note" role="status">It listens at {link}, for this computer only.</p>'
    return '<p class="gt-note">A process of its own, for this computer only. It ends with this page.</p>'
