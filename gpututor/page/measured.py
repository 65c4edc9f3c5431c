"""The part of a lesson that measures on the reader's own GPU; without one it is a single quiet line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import marimo as mo

from gpututor import timeline_file
from gpututor.cards import Machine
from gpututor.errors import GpututorError
from gpututor.expect import AccountDifference
from gpututor.ledger import Ledger, charge
from gpututor.measure.nvml import Gpus, find_gpus
from gpututor.own_gpu import Beside, beside, not_listed, standing_in, without_profiler
from gpututor.page.expected import expected_table
from gpututor.page.figures import figure, gauge_table, gauges, source_line
from gpututor.page.parts import escape, html, shown
from gpututor.page.run import ghost, progress_line, run_buttons, run_panel
from gpututor.page.runner import UNDER_WAY, Phase, Runner, Shown
from gpututor.replay import Played, play_file, read_tape
from gpututor.results import StoredResult
from gpututor.store import Store
from gpututor.text import duration
from gpututor.timeline import Label, Origin

BUDGET_S = 180.0  # the first use of a GPU loads its libraries, from a slow disk for a minute
READY = Shown("ready")
NO_FLOP = "MFU is not known here: the profiler's trace holds no FLOP. The lengths of the kernels say as much."


class OwnGpu:
    """The reader's own GPU on one page: whether there is one, and the runs measured on it.

    Make it in a cell that never runs again and bind its getters to names of their own, as with a `Runner`. Its
    results lie apart from those of the lesson's simulated runs.
    """

    def __init__(self, store: Store, lesson: str, experiment: str) -> None:
        self.found: Gpus = find_gpus()
        self.experiment = experiment
        self.runner = Runner(store, f"{lesson}-measured") if self.found.names else None

    @property
    def get_phase(self) -> Callable[[], Phase]:
        """The phase of the run that measures; always "ready" without a GPU."""
        return self.runner.get_phase if self.runner else lambda: "ready"

    @property
    def get_shown(self) -> Callable[[], Shown]:
        """How far that run is."""
        return self.runner.get_shown if self.runner else lambda: READY

    def buttons(self, phase: Phase, params: Mapping[str, Any]) -> list[mo.ui.button]:
        """The button that measures, with Stop beside it while it does; none without a GPU."""
        runner = self.runner
        if runner is None:
            return []
        return run_buttons(
            phase,
            lambda: runner.start(self.experiment, params, budget_s=BUDGET_S, kind="real"),
            runner.stop,
            label="Measure it on my GPU",
        )

    def section(
        self,
        buttons: Sequence[object],
        now: Shown,
        draw: Callable[[StoredResult], object],
        what: str = "step",
        recorded: mo.Html | None = None,
    ) -> mo.Html:
        """The card to measure with, and below it what `draw` makes of the newest measured run.

        Without a GPU it is one line that says so. `draw` may raise; the reader then sees one sentence. `recorded` (see
        `page.recorded`) is what other machines measured, and stands at the end.
        """
        runner = self.runner
        others = [recorded] if recorded is not None else []
        if runner is None:
            why = f"no GPU was found here, as {self.found.reason or 'none is listed'}"
            line = f"All of {'the above' if others else 'this'} is simulated: {why}."
            said = f'<p class="gt gt-note">{escape(line)}</p>'
            return html('<div class="gt gt-findings">', said, *others, "</div>") if others else html(said)
        panel = run_panel(
            buttons,
            progress_line(runner.caught_up(now), what),
            machine=", ".join(self.found.names),
            hint="Keep other programs off the card and the processor meanwhile.",
            trouble=runner.trouble,
            title="Measure it here",
        )
        result = runner.result
        if result is None or result.folder is None or not result.data or now.phase in UNDER_WAY:
            return html(panel, *others)
        return html('<div class="gt gt-findings">', panel, _drawn(draw, result), "</div>", *others)


def _drawn(draw: Callable[[StoredResult], object], result: StoredResult) -> object:
    """What `draw` makes of a result; one sentence where its files can't be read or something else goes wrong."""

    def told() -> object:
        try:
            return draw(result)
        except GpututorError as error:
            said = escape(f"What this run left can't be shown: {error}.")
            return html(f'<p class="gt gt-failed" role="alert">{said}</p>')

    return shown(told)


def measured_steps(result: StoredResult, tape: Path) -> mo.Html:
    """A measured training run beside what the model expects of that card from the simulated run's tape.

    Raises:
        TimelineError: a file of either run is gone or damaged.
    """
    assert result.folder is not None
    timeline = timeline_file.load(result.folder / result.data["timeline"])
    both = beside(timeline, read_tape(tape))
    pace = without_profiler(both.measured, result.data["steps"], result.data["n_kept"])
    notes = " ".join(filter(None, [pace, *(f"{note[:1].upper()}{note[1:]}." for note in result.data["notes"])]))
    step = duration(both.measured.step_ns)
    seen = gauges(both.measured, f"{both.measured.n_steps} steps, {step} each, torch {result.data['torch']}")
    return html(seen, _expected(both), f'<p class="gt gt-note">{escape(notes)}</p>')


def _expected(both: Beside) -> mo.Html:
    """Gauges as expected, wall time beside its band, and the accounts that differ; else why nothing is expected."""
    if both.expected is None or both.comparison is None:
        return html(f'<p class="gt-note">{escape(both.words)}</p>')
    labels = f"{source_line(both.measured.label)}, beside {source_line(both.expected.label)}"
    comparison = both.comparison
    largest = comparison.largest
    why = list(largest.explanations) if largest else []
    perhaps = f"{escape(largest.text)}. Perhaps {escape('; or '.join(why))}." if largest and why else ""
    return html(
        gauges(both.expected, f"expected, {duration(both.expected.step_ns)} a step"),
        figure(
            "Measured beside expected",
            labels,
            expected_table([("One step", comparison.wall)]),
            accounts_table(comparison.accounts),
            f'<p class="gt-note">{perhaps}</p>' if perhaps else "",
            note=both.words,
            wide=True,
        ),
    )


def measured_gauges(result: StoredResult, tapes: Mapping[str, Path]) -> mo.Html:
    """Measured workloads, three gauges each, beside what the model expects of that card from their tapes.

    Raises:
        TimelineError: a file of either run is gone or damaged.
    """
    assert result.folder is not None
    files = {name: result.folder / file for name, file in result.data["timelines"].items() if name in tapes}
    timelines = {name: timeline_file.load(file) for name, file in files.items()}
    if not timelines:
        return ghost("None of the measured programs is among those of your run above; run all of them.")
    label = replace(next(iter(timelines.values())).label, what="")
    seen = {name: charge(timeline) for name, timeline in timelines.items()}
    left_out = " ".join(f"{name} is left out: {why}." for name, why in result.data["left_out"].items())
    table = gauge_table(list(seen.items()))
    note = " ".join(filter(None, [left_out, NO_FLOP if any(each.mfu is None for each in seen.values()) else ""]))
    measured = figure("Three gauges, measured", label, table, note=note, wide=True)
    stand_in = standing_in(label)
    if stand_in is None:
        return html(measured, f'<p class="gt gt-note">{escape(not_listed(label))}</p>')
    expected = {name: play_file(tapes[name], stand_in.machine) for name in timelines}
    return html(measured, *_expected_gauges(label, stand_in.machine, seen, expected))


def _expected_gauges(
    label: Label, machine: Machine, seen: Mapping[str, Ledger], expected: Mapping[str, Played]
) -> tuple[mo.Html, mo.Html]:
    model = Label(Origin.SIMULATED, machine.card.name, machine.name)
    table = gauge_table([(name, played.ledger) for name, played in expected.items()])
    kernels = [(name, ledger.busy_ns / ledger.n_kernels, expected[name].kernel_ns) for name, ledger in seen.items()]
    labels = f"{source_line(label)}, beside {source_line(model)}"
    return (
        figure("The same, expected", model, table, wide=True),
        figure("One kernel", labels, kernels_table(kernels), wide=True),
    )


def kernels_table(rows: Sequence[tuple[str, float, float]]) -> str:
    """For each workload the mean length of a kernel in nanoseconds, measured and expected, and their ratio; as HTML."""
    return _table(
        "Length of one kernel",
        ("Measured", "Expected", "Ratio"),
        [(name, (duration(seen), duration(ours), f"{seen / ours:.3g}")) for name, seen, ours in rows if ours],
    )


def accounts_table(accounts: Sequence[AccountDifference]) -> str:
    """Each account's time a step, measured and expected, the largest difference first; as HTML."""
    rows = []
    for each in accounts:
        sign = "+" if each.difference_ns > 0 else "−"
        cells = (_time(each.seen_ns), _time(each.expected_ns), sign + duration(abs(each.difference_ns)))
        rows.append((each.account.value, cells))
    return _table("Time of each account in one step", ("Measured", "Expected", "More or less"), rows)


def _time(ns: float) -> str:
    return duration(ns) if ns else "none"


def _table(caption: str, titles: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for name, cells in rows
    )
    return (
        f'<table class="gt-expect"><caption class="gt-hidden">{escape(caption)}</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )
