"""`gpututor history`: the runs that were logged, and what changed between them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gpututor.errors import GpututorError
from gpututor.history import Entry, History
from gpututor.history.changes import LEAST, changes, different, groups, moved, signed
from gpututor.history.plain import change_fields, csv_lines, moved_fields, run_fields
from gpututor.text import dollars, duration, percent

SHOWN = 20
NONE_YET = (
    "No runs yet: `gpututor run`, `gpututor job` and gpututor.measure log theirs, unless GPUTUTOR_HISTORY=0 is set."
)


class NothingToShow(GpututorError, LookupError):
    """The history has no run that fits the question."""


@click.group("history", invoke_without_command=True)
@click.pass_context
def history_command(ctx: click.Context) -> int | None:
    """Your runs, measured and simulated: list, show, compare, plot, regressions, export, delete.

    Runs of one script, job or loop with the same configuration on the same machine are repeats of each other. Logging
    is off with --no-history at a command, history=False at gpututor.measure, or GPUTUTOR_HISTORY=0 for all.
    """
    return ctx.invoke(list_command) if ctx.invoked_subcommand is None else None


def _runs(last: int | None = None) -> tuple[Entry, ...]:
    history = History()
    runs = history.runs(last)
    if history.trouble:
        click.echo(history.trouble, err=True)
    return runs


@history_command.command("list")
@click.option("--last", type=click.IntRange(1), default=SHOWN, show_default=True, help="How many runs.")
@click.option("--name", help="Only runs of this script, job or loop.")
@click.option("--json", "as_json", is_flag=True, help="Print the runs as JSON.")
def list_command(last: int = SHOWN, name: str | None = None, as_json: bool = False) -> None:
    """The last runs, the newest at the end."""
    runs = [run for run in _runs() if name in (None, run.name)][-last:]
    if as_json:
        click.echo(json.dumps([run_fields(run) for run in runs], indent=2))
        return
    if not runs:
        click.echo(NONE_YET)
        return
    rows = [("run", "when (UTC)", "kind", "what", "steps", "a step", "busy", "1,000 steps")]
    for run in runs:
        usd = dollars(run.usd_per_1000_steps) if run.usd_per_1000_steps is not None else "–"
        busy = percent(run.busy_share) if run.busy_share is not None else "–"
        step = duration(run.step_ns) if run.step_ns is not None else "–"
        when = run.at[:16].replace("T", " ")
        rows.append((str(run.number), when, run.kind, run.title, f"{run.n_steps:,}", step, busy, usd))
    _columns(rows, right={0, 4, 5, 6, 7})


def _columns(rows: Sequence[Sequence[str]], right: set[int]) -> None:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = (c.rjust(w) if k in right else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        click.echo("  ".join(cells).rstrip())


@history_command.command("show", context_settings={"ignore_unknown_options": True})
@click.argument("number", type=int, default=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON.")
def show_command(number: int, as_json: bool) -> None:
    """Everything that is known of run NUMBER; -1 is the last one."""
    run = History().run(number)
    if as_json:
        click.echo(json.dumps(run_fields(run), indent=2))
        return
    click.echo(f"Run {run.number}, {run.at} ({run.kind}): {run.title}")
    step = (
        duration(run.step_ns)
        if run.step_ns is not None
        else f"no step time ({run.reasons.get('step_ns', 'no reason')})"
    )
    click.echo(f"{run.n_steps:,} steps, {step} each")
    if run.busy_share is not None:
        click.echo(f"busy {percent(run.busy_share)} ({run.busy_basis})")
    total_ns = sum(run.accounts_ns.values())
    for account, ns in sorted(run.accounts_ns.items(), key=lambda pair: -pair[1]):
        click.echo(f"  {account.value:<26}{duration(ns):>12}{percent(ns / total_ns):>10}")
    if run.usd_per_1000_steps is not None:
        click.echo(f"1,000 steps cost {dollars(run.usd_per_1000_steps)} at {dollars(run.usd_per_hour)} an hour")
    click.echo(f"machine {run.machine or 'not known'}, card {run.card or 'none'}, commit {run.commit or 'not known'}")
    for title, told in (("versions", run.versions), ("configuration", run.configuration), ("not known", run.reasons)):
        if told:
            click.echo(f"{title}: " + ", ".join(f"{name} {value}" for name, value in told.items()))


@history_command.command("compare", context_settings={"ignore_unknown_options": True})
@click.argument("before", type=int)
@click.argument("after", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def compare_command(before: int, after: int, as_json: bool) -> None:
    """Run AFTER against run BEFORE: the step, account by account, and what else is different."""
    history = History()
    one, other = history.run(before), history.run(after)
    differences = moved(one.accounts_ns, other.accounts_ns)
    share = other.step_ns / one.step_ns - 1 if one.step_ns and other.step_ns else None
    others = different(other, one) + _settings(one, other)
    if as_json:
        told = {"before": run_fields(one), "after": run_fields(other), "share": share, "different": others}
        click.echo(json.dumps(told | {"moved": [moved_fields(each) for each in differences]}, indent=2))
        return
    click.echo(f"Run {one.number}: {one.title}, {duration(one.step_ns)} a step")
    click.echo(f"Run {other.number}: {other.title}, {duration(other.step_ns)} a step")
    click.echo("No step times to compare." if share is None else f"{signed(share)} a step")
    rows = [("", f"run {one.number}", f"run {other.number}", "difference")]
    for each in differences:
        sign = "+" if each.difference_ns > 0 else "−"
        size = f"{sign}{duration(abs(each.difference_ns))}"
        rows.append((each.account.value, duration(each.before_ns), duration(each.after_ns), size))
    if differences:
        _columns(rows, right={1, 2, 3})
    for line in others:
        click.echo(line)
    if one.key != other.key:
        click.echo("The two aren't repeats of each other, so the difference may be meant.")


def _settings(one: Entry, other: Entry) -> list[str]:
    names = sorted({*one.configuration, *other.configuration})
    pairs = ((name, one.configuration.get(name), other.configuration.get(name)) for name in names)
    return [f"{name} {a} before and {b} after" for name, a, b in pairs if a != b]


@history_command.command("plot")
@click.option("--name", help="Only runs of this script, job or loop.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with charts.")
def plot_command(name: str | None, html: Path | None) -> None:
    """The step times of each configuration, as blocks; with --html as a page of charts."""
    from gpututor.history.drawing import line_of

    shown = [runs for runs in groups(_runs()).values() if name in (None, runs[-1].name)]
    if not shown:
        raise NothingToShow(f"there is no run with a step time{f' of {name}' if name else ''}; gpututor history list")
    for runs in shown:
        click.echo(f"{runs[-1].title} ({runs[-1].kind})\n  {line_of(runs)}")
    if html is not None:
        from gpututor.cli.history_page import chart_page

        try:
            html.write_text(chart_page(shown), encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{html} can't be written ({error.strerror or error})") from error
        click.echo(f"The charts are in {html}.")


@history_command.command("regressions")
@click.option("--name", help="Only runs of this script, job or loop.")
@click.option("--all", "with_all", is_flag=True, help="Also steps that became shorter, and changes that are over.")
@click.option("--json", "as_json", is_flag=True, help="Print the changes as JSON.")
def regressions_command(name: str | None, with_all: bool, as_json: bool) -> int:
    """Since which run steps take longer, on which account, and what else changed there.

    Each run is held against the median of those before it with the same configuration. The exit status is 1 where
    steps are longer now than they were.
    """
    shown = [runs for runs in groups(_runs()).values() if name in (None, runs[-1].name)]
    all_found = [change for runs in shown for change in changes(runs)]
    standing = [change for change in all_found if change.slower and not change.over]
    found = all_found if with_all else standing
    cannot_tell = [runs for runs in shown if len(runs) <= LEAST]
    if as_json:
        told = [{"name": runs[-1].name, "kind": runs[-1].kind, "n_runs": len(runs)} for runs in cannot_tell]
        click.echo(json.dumps({"changes": [change_fields(c) for c in found], "cannot_tell": told}, indent=2))
        return int(bool(standing))
    for change in found:
        click.echo(f"{change.since.title}: {change.text}.")
    n_told = len(shown) - len(cannot_tell)
    if not found:
        click.echo(f"No step became longer in {n_told} configuration{'' if n_told == 1 else 's'}.")
    for runs in cannot_tell:
        click.echo(f"{runs[-1].title}: cannot tell yet, with {len(runs)} of the {LEAST + 1} runs that it takes.")
    sys.stdout.flush()
    return int(bool(standing))


@history_command.command("export")
@click.option("--csv", "path", type=click.Path(dir_okay=False, path_type=Path), help="The file; else it is printed.")
def export_command(path: Path | None) -> None:
    """All runs as CSV, times in nanoseconds a step."""
    runs = _runs()
    text = "".join(csv_lines(runs))
    if path is None:
        click.echo(text, nl=False)
        return
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise click.ClickException(f"{path} can't be written ({error.strerror or error})") from error
    click.echo(f"{len(runs):,} runs are in {path}.")


@history_command.command("delete")
@click.argument("numbers", type=int, nargs=-1)
@click.option("--all", "with_all", is_flag=True, help="All runs.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def delete_command(numbers: tuple[int, ...], with_all: bool, yes: bool) -> None:
    """Take runs out of the history for good; other runs keep their numbers."""
    history = History()
    known = [run.number for run in history.runs() if run.number is not None]
    chosen = known if with_all else [history.run(number).number or 0 for number in dict.fromkeys(numbers)]
    if not chosen:
        raise NothingToShow("no run was named; for example: gpututor history delete 12 13")
    if not yes:
        click.confirm(f"Delete {len(chosen)} run{'' if len(chosen) == 1 else 's'} for good?", abort=True)
    click.echo(f"{history.delete(chosen)} deleted.")
