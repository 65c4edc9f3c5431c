"""The part of a lesson that runs a sweep on this computer: on its GPU, or without one on its processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import marimo as mo

from gpututor.cards import find_card
from gpututor.lookup import machine_named
from gpututor.measure.nvml import Gpus, find_gpus
from gpututor.own_machine import cpu_name
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.measured import BUDGET_S
from gpututor.page.parts import escape, html, shown, trouble_line
from gpututor.page.run import progress_line, run_buttons, run_panel
from gpututor.page.runner import UNDER_WAY, Phase, Runner, Shown
from gpututor.page.sweep import Point, sweep_points
from gpututor.paths import recordings_dirs
from gpututor.recordings import EXPERIMENTS, LessonRecording, read_of
from gpututor.results import StoredResult
from gpututor.store import Store
from gpututor.text import duration


class OwnMachine:
    """This computer's GPU, or its processor where torch finds no GPU, and the sweeps measured on it.

    Make it in a cell that never runs again and bind its getters to names of their own, as with a `Runner`.
    `experiment` is a function like `sweeps.measure`, with a parameter `device`.
    """

    def __init__(self, store: Store, lesson: str, experiment: str) -> None:
        self.experiment, self.lesson = experiment, int(lesson)
        self.runner = Runner(store, f"{lesson}-measured")

    @cached_property
    def found(self) -> Gpus:
        """This computer's GPUs, looked for when first asked for."""
        return find_gpus()

    @property
    def device(self) -> str:
        """What torch calls the thing it measures on."""
        return "cuda" if self.found.names else "cpu"

    @property
    def get_phase(self) -> Callable[[], Phase]:
        """The phase of the run that measures."""
        return self.runner.get_phase

    @property
    def get_shown(self) -> Callable[[], Shown]:
        """How far that run is."""
        return self.runner.get_shown

    @property
    def name(self) -> str:
        """What it measures on, as a reader knows it."""
        return ", ".join(self.found.names) or f"this computer's processor, {cpu_name() or 'of unknown make'}"

    def buttons(self, phase: Phase, params: Mapping[str, Any] | None = None) -> list[mo.ui.button]:
        """The button that measures, with Stop beside it while it does."""
        return run_buttons(
            phase,
            lambda: self.runner.start(
                self.experiment, {**(params or {}), "device": self.device}, budget_s=BUDGET_S, kind="real"
            ),
            self.runner.stop,
            label="Measure it on my GPU" if self.device == "cuda" else "Measure it on my processor",
        )

    def section(self, buttons: Sequence[object], now: Shown, kept: Kept, what: str = "step") -> mo.Html:
        """The card to measure with, and below it each measured variant beside the same one simulated.

        `kept` is what the lesson's simulated run left. What other machines recorded of the lesson stands
        below that, the reader's own recordings first.
        """
        why = "" if self.device == "cuda" else f"No GPU was found here, as {self.found.reason or 'none is listed'}. "
        panel = run_panel(
            buttons,
            progress_line(self.runner.caught_up(now), what),
            machine=self.name,
            hint=f"{why}Keep other programs quiet meanwhile.",
            trouble=self.runner.trouble,
            title="The same on your own machine",
        )
        parts: list[object] = [panel]
        measured = self.runner.result
        if measured is not None and measured.data and now.phase not in UNDER_WAY:
            parts.append(shown(lambda: _beside(measured, kept)))
        parts += _recorded(self.lesson, kept)
        return html('<div class="gt gt-findings">', *parts, "</div>") if len(parts) > 1 else panel


def _recorded(lesson: int, kept: Kept) -> list[object]:
    """What was recorded of the lesson's sweep elsewhere, a figure for each card; a damaged file is one sentence."""
    parts: list[object] = []
    for experiment in (each for each in EXPERIMENTS if each.lesson == lesson):
        for folder in recordings_dirs():
            found, sentences = read_of(folder, experiment)
            parts += [shown(partial(_beside, each.result, kept, each)) for each in found]
            parts += [trouble_line(f"A recording can't be shown: {sentence}") for sentence in sentences]
    return parts


def _beside(measured: StoredResult, kept: Kept, recording: LessonRecording | None = None) -> mo.Html:
    """A table of measured steps, beside the same card simulated where it is one that is listed."""
    data = measured.data
    card = find_card(data["gpu"]) if data["gpu"] else None
    expected: dict[str, Point] = {}
    if card is not None and may_be_priced_on(kept.result, card.name):
        expected = {point.key: point for point in sweep_points(kept, machine_named(card.name))}
    where = data["gpu"] or f"processor, {data.get('host') or 'of unknown make'}"
    source = f'<span class="gt-tag gt-measured">Measured</span> {escape(where)} · torch {escape(data["torch"])}'
    if recording is not None:
        source += f" · driver {escape(recording.driver or 'not known')} · {escape(recording.at[:10])}"
    rows = "".join(_row(point, expected.get(point["key"])) for point in data["points"])
    head = "<th scope='col'>One step</th>" + ("<th scope='col'>Expected</th>" if expected else "")
    table = (
        '<table class="gt-expect"><caption class="gt-hidden">Measured steps</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
    note = "" if card or data["device"] == "cpu" else "This card is not among those that can be simulated."
    if data["device"] == "cpu":
        note = "A processor has no launch queue: an operator that is called is done when the call returns."
    title = "Measured here" if recording is None else "Measured elsewhere"
    return figure(title, source, table, note=note, wide=True)


def may_be_priced_on(result: StoredResult | None, card: str) -> bool:
    """Whether a run may be put under a card: on the paced clock what the host waited belongs to the run's own card."""
    if result is None or result.data.get("clock") != "paced":
        return True
    return machine_named(result.data["machine"]).card.name == card


def _row(point: Mapping[str, Any], expected: Point | None) -> str:
    seen = duration(point["step_ns"]) if point["step_ns"] is not None else escape(point["trouble"] or "did not run")
    cells = f"<td>{seen}</td>"
    if expected is not None:
        cells += f"<td>{duration(expected.step_ns) if expected.played else escape(expected.trouble or '—')}</td>"
    return f'<tr><th scope="row">{escape(point["label"])}</th>{cells}</tr>'
