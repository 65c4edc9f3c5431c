"""The page that `gpututor history plot --html` writes: the runs of each configuration as bars, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpututor.charts import WORDS
from gpututor.charts.runs import STYLE, run_bars
from gpututor.history import Entry
from gpututor.history.changes import LEAST, Change, changes, signed
from gpututor.history.drawing import in_change
from gpututor.page import figure, legend
from gpututor.page.alone import alone
from gpututor.page.figures import TAG
from gpututor.page.parts import escape
from gpututor.page.repeats import kind_of, lasted, repeats
from gpututor.text import dollars, duration, percent
from gpututor.timeline import Origin

SHOWN = 120  # our choice: thinner bars than these can't be told apart on a phone
MOVED_SHARE = 0.01  # our choice: an account that moved by less than a hundredth of the step is no part of the change
PAGE_STYLE = """
.gt-history { display: grid; gap: .9rem }
.gt-history h2 { margin: 0; overflow-wrap: anywhere }
.gt-history > * { min-width: 0 }
.gt-history .gt-change { border-left: 4px solid var(--gt-turn); padding-left: .9rem; margin: 0 0 .9rem }
.gt-history .gt-change p { margin: 0 0 .4rem }
.gt-scroll { overflow-x: auto }
.gt-runs { border-collapse: collapse; font-size: .95rem; margin-top: .6rem; min-width: 34rem; width: 100% }
.gt-runs th, .gt-runs td { text-align: left; font-weight: 400; padding: .25rem 1rem .25rem 0;
  border-top: 1px solid var(--gt-line); font-variant-numeric: tabular-nums; white-space: nowrap }
.gt-runs thead th, .gt-runs thead td { color: var(--gt-soft); border: 0 }
.gt-runs.gt-moved { min-width: 0; width: auto; margin: 0 }
.gt-runs.gt-moved th { white-space: normal }
.gt-runs .gt-out td, .gt-runs .gt-out th { font-weight: 700 }
"""


def chart_page(groups: Sequence[Sequence[Entry]]) -> str:
    """An HTML page with one chart a configuration, those that are slower now first. It asks for nothing when opened."""
    found = [(runs, changes(runs)) for runs in groups]
    found.sort(key=lambda pair: (not any(_stands(change) for change in pair[1]), -(pair[0][-1].number or 0)))
    body = [_head(found, groups), *(_configuration(runs, turned, groups) for runs, turned in found)]
    return alone("Your runs, and what changed", "".join(body), STYLE + PAGE_STYLE)


def _stands(change: Change) -> bool:
    return change.slower and not change.over


def _head(found: Sequence[tuple[Sequence[Entry], tuple[Change, ...]]], groups: Sequence[Sequence[Entry]]) -> str:
    n_runs, n = sum(len(runs) for runs, _ in found), len(found)
    days = sorted(run.at[:10] for runs, _ in found for run in runs)
    standing = [change for _, turned in found for change in turned if _stands(change)]
    told = [f"{_where(change.since, groups)}: {_short(change)}" for change in standing]
    lead = "; ".join(told) if told else "No step became longer"
    when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    plural = "" if n == 1 else "s"
    return (
        '<header class="gt gt-head"><h1>Your runs, and what changed</h1>'
        f'<p class="gt-lead">{escape(lead)}.</p><p class="gt-note">{n_runs:,} runs with a step time, {n} '
        f"configuration{plural}, {when} (UTC)</p></header>"
    )


def _where(run: Entry, groups: Sequence[Sequence[Entry]]) -> str:
    told = settings(run, [group[-1] for group in groups])
    return run.title + (f" ({told})" if told else "")


def _short(change: Change) -> str:
    account = f", on the account {change.account.account.value}" if change.account else ""
    return f"{change.when}: {signed(change.share)}{account}"


def _configuration(runs: Sequence[Entry], turned: Sequence[Change], groups: Sequence[Sequence[Entry]]) -> str:
    last, shown = runs[-1], runs[-SHOWN:]
    chart = repeats(shown, turned, runs)
    notes = [f"The last {SHOWN} of {len(runs):,} runs are drawn."] if len(runs) > SHOWN else []
    if chart.rooms:
        notes.append("Between the dashed lines lies the room that a step usually has.")
    elif len(runs) <= LEAST:
        notes.append(f"With {len(runs)} of the {LEAST + 1} runs that it takes, nobody can tell yet what is usual.")
    if any(not bar.accounts_ns for bar in chart.bars):
        notes.append("A pale bar is a run that nothing split into accounts.")
    told = settings(last, [group[-1] for group in groups])
    under = figure(
        f"{f'{len(runs):,} runs, the last' if len(runs) > 1 else '1 run'} of {duration(last.step_ns)} a step",
        _source(last),
        *([f'<p class="gt-note">{escape(told)}</p>'] if told else []),
        legend(chart.accounts[::-1]),
        run_bars(chart),
        note=" ".join([*notes, "Hover or tap for a run's figures."]),
    ).text
    changed = "".join(map(_change, filter(lasted, reversed(turned)))) + _chances(turned)
    return (
        f'<section class="gt gt-history"><h2>{escape(last.name)}</h2>{under}{changed}{_table(shown, turned)}</section>'
    )


def _source(run: Entry) -> str:
    """Simulated, measured or recorded; on which card and machine; by which command or call: as HTML."""
    word = TAG[Origin(run.origin)]
    parts = [run.card or "no GPU", run.machine, {"measure": "gpututor.measure"}.get(run.kind, f"gpututor {run.kind}")]
    return f'<span class="gt-tag gt-{word.lower()}">{word}</span> {escape(" · ".join(filter(None, parts)))}'


def settings(run: Entry, others: Sequence[Entry]) -> str:
    """What tells this configuration from the others of the same name; empty where there is no other."""
    rivals = [other for other in others if other.name == run.name and other.key != run.key]
    names = [
        name
        for name, value in run.configuration.items()
        if any(other.configuration.get(name) != value for other in rivals)
    ]
    return " · ".join(f"{name.replace('_', ' ')}: {_value(run.configuration[name])}" for name in names)


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items()) or "none"
    return str(value)


def _change(change: Change) -> str:
    """A change in one sentence, and the accounts that moved most."""
    sentence = change.text[:1].upper() + change.text[1:]
    return f'<div class="gt-change gt-{kind_of(change)}"><p>{escape(sentence)}.</p>{_moved(change)}</div>'


def _chances(turned: Sequence[Change]) -> str:
    """The single runs outside the room, behind a line that says how many there are."""
    odd = [change for change in reversed(turned) if not lasted(change)]
    if not odd:
        return ""
    listed = "".join(f"<li>{escape(change.when)}: {signed(change.share)} a step</li>" for change in odd)
    many = "1 single run lay" if len(odd) == 1 else f"{len(odd)} single runs lay"
    return (
        f"<details><summary>{many} outside the usual room, which may be chance</summary>"
        f'<ul class="gt-notes-list">{listed}</ul></details>'
    )


def _moved(change: Change) -> str:
    lines = "".join(
        f'<tr><th scope="row">{WORDS[each.account]}</th><td>{_time(each.before_ns)}</td>'
        f"<td>{_time(each.after_ns)}</td><td>{'+' if each.difference_ns > 0 else '−'}"
        f"{duration(abs(each.difference_ns))}</td></tr>"
        for each in change.moved
        if abs(each.difference_ns) >= MOVED_SHARE * change.band.expected
    )
    heads = "".join(f'<th scope="col">{word}</th>' for word in ("Before", "After", "More or less"))
    caption = '<caption class="gt-hidden">Time of each account in one step, before and after</caption>'
    table = f'<table class="gt-runs gt-moved">{caption}<thead><tr><td></td>{heads}</tr></thead>{lines}</table>'
    return table if lines else ""


def _time(ns: float) -> str:
    return duration(ns) if ns else "none"


def _table(runs: Sequence[Entry], turned: Sequence[Change]) -> str:
    lines = "".join(_line(run, turned) for run in reversed(runs))
    heads = ("Run", "When (UTC)", "A step", "Busy", "1,000 steps", "Commit", "")
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    return (
        f'<details><summary>The same as a table</summary><div class="gt-scroll"><table class="gt-runs">'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div></details>"
    )


def _line(run: Entry, turned: Sequence[Change]) -> str:
    outside = in_change(run, turned)
    cells = (
        run.at[:16].replace("T", " "),
        duration(run.step_ns),
        percent(run.busy_share) if run.busy_share is not None else "not known",
        dollars(run.usd_per_1000_steps) if run.usd_per_1000_steps is not None else "not known",
        (run.commit or "not known")[:9],
        "outside the usual room" if outside else "",
    )
    columns = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr{" class=gt-out" if outside else ""}><th scope="row">{run.number}</th>{columns}</tr>'
