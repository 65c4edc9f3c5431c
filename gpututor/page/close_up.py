"""A run looked at closely: views to jump to, a window that the reader moves, strip and chart, and the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import marimo as mo

from gpututor.charts import Idle, views
from gpututor.ledger import Ledger, rows, waits
from gpututor.page.figures import figure, timeline_controls, timeline_figure, view_control, window_control
from gpututor.page.parts import shown
from gpututor.page.waterfall import waterfall
from gpututor.replay import Played
from gpututor.timeline import Timeline


@dataclass(frozen=True, slots=True)
class CloseUp:
    """A timeline with its waits, and the views of it that a reader can jump to.

    Of its controls the view belongs in the cell that makes the close-up, the window with the `head` in the next, and
    the `chart` in a third, so that a moving slider is never redrawn by its own effect.
    """

    timeline: Timeline
    idle: Idle
    views: Mapping[str, tuple[int, int]]

    def view_control(self, *, last: bool = False) -> mo.ui.radio:
        """Pills to jump to one of the views; the first is chosen, or the last."""
        names = list(self.views)
        return view_control(self.views, chosen=names[-1] if last else names[0])

    def window_control(self, view: str) -> mo.ui.range_slider:
        """The slider with two ends over the whole timeline, set to this view."""
        return window_control(self.timeline, self.views[view])

    def head(self, title: str, *controls: object) -> mo.Html:
        """Title, label, legend and the controls, the window last."""
        *above, window = controls
        return timeline_controls(title, self.timeline, self.idle, mo.vstack(above), window)

    def chart(self, window_us: Sequence[float]) -> object:
        """Strip and chart of the window, or one sentence where they can't be drawn."""
        return shown(lambda: timeline_figure(self.timeline, self.idle, window_us))


def close_up(
    played: Played,
    *,
    whole: bool = False,
    more: Mapping[str, tuple[int, int]] | None = None,
    launches_at: float | None = None,
) -> CloseUp:
    """A close-up of the run's typical step, or of all that was kept.

    `more` are views that come before the usual ones; `launches_at` is where in the timeline, as a share, the view of a
    few launches begins (`charts.views`).
    """
    timeline = played.timeline if whole else played.timeline.step(played.typical_step)
    idle = played.ledger.pieces if whole else waits(timeline)
    usual = views(timeline, idle) if launches_at is None else views(timeline, idle, launches_at=launches_at)
    return CloseUp(timeline, idle, {**(more or {}), **usual})


def ledger_figure(
    ledger: Ledger, why: Mapping[str, str] | None = None, *, title: str = "Ledger", control: object = ""
) -> mo.Html:
    """The ledger from wall time down to useful arithmetic; `why` as in `waterfall`, `control` stands above it."""
    return figure(title, ledger.label, control, waterfall(rows(ledger), why), wide=True)
