"""The tables of lesson 9: who waits how often, where a stopwatch puts the time, and what others saw. HTML text."""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.charts import css_fill
from gpututor.experiments.answers import MATCHED
from gpututor.experiments.stopwatch import Stopwatch
from gpututor.ledger import Account
from gpututor.page.lessons.answers import NOTHING, Answers
from gpututor.page.parts import escape
from gpututor.references import Reference
from gpututor.text import duration, percent
from gpututor.timeline import Activity, Timeline

WAYS = ("silent", "item", "print", "cpu", "bar", "check", "both", "mask", "tenth", "sum", "later")
LINES = {
    "item": "loss.item() at the end",
    "plain-item": ".item(), ordinary copy",
    "plain": "ordinary copy, no .item()",
    "later": "read a step later",
}
"""The loops under the stopwatch, as their table calls them."""

PARTS = (
    ("bringing the batch", css_fill(Account.EXPOSED_COPY)),
    ("launching", "var(--gt-wall)"),
    ("reading the loss", css_fill(Account.BLOCKING_SYNC)),
)
TITLES = ("Waits a step", "One step", "Last loss")
KNOWN = '<i style="height:.5rem;width:22%;border-radius:3px;background:var(--gt-track)"></i>'
ASKED = (
    '<b style="height:1.6rem;border-radius:4px;border:1px solid var(--gt-line);display:grid;place-items:center;'
    'background:repeating-linear-gradient(-45deg, var(--gt-track) 0 7px, transparent 7px 14px)">?</b>'
)
ALIKE = 2.5  # other jobs, cards and years: within this factor we call two effects alike
AROUND_NS = 150_000  # of the window on what follows an answer: some ten launches
UNCHANGED = 0.03  # where they saw no change at all


LOOP = (
    "batch.to(device)",
    "loss = model(batch)",
    "loss.backward()",
    "optimizer.step()",
    "print(loss.item())",
)


def loop_picture(lines: Sequence[str] = LOOP) -> str:
    """The question as a picture: the lines of a loop, a bar beside each, the last one hatched with a question mark."""
    rows = "".join(
        f'<div style="display:grid;grid-template-columns:12.7rem 1fr;gap:.8rem;align-items:center;min-height:1.7rem">'
        f'<code style="white-space:nowrap">{escape(line)}</code>{ASKED if k == len(lines) - 1 else KNOWN}</div>'
        for k, line in enumerate(lines)
    )
    return (
        f'<div role="img" aria-label="A loop of {len(lines)} lines; what its last one, {escape(lines[-1])}, costs is '
        f'the question" style="margin-top:1rem">{rows}</div>'
    )


def habits_table(answers: Answers) -> str:
    """Each habit: how often a step waits, how long it takes, by how much it is longer, and the last loss."""
    return _table(answers, [key for key in WAYS if answers.has(key)], "silent", "What is done with the loss")


def matchings_table(answers: Answers) -> str:
    """The same for the detector's ways to bring its tables over."""
    return _table(answers, [key for key in MATCHED if answers.has(key)], "together", "Tables of costs")


def _table(answers: Answers, keys: Sequence[str], base: str, first: str) -> str:
    lines = ""
    for key in keys:
        seen, loss = answers.watched[key], answers.losses[key][-1]
        step = duration(seen.step_ns) + _longer(answers, key, base)
        cells = (f"{seen.n_waits:.3g}", step, "—" if loss is None else f"{loss:.4f}")
        told = "".join(
            f'<td><span class="gt-only-narrow">{title}</span>{escape(cell)}</td>'
            for title, cell in zip(TITLES, cells, strict=True)
        )
        lines += f'<tr><th scope="row">{escape(answers.labels[key])}</th>{told}</tr>'
    head = f'<th scope="col">{escape(first)}</th>' + "".join(f'<th scope="col">{title}</th>' for title in TITLES)
    return (
        f'<table class="gt-expect gt-points"><caption class="gt-hidden">{escape(first)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _longer(answers: Answers, key: str, base: str) -> str:
    if key == base or not answers.has(base):
        return ""
    more = answers.longer_share(key, base)
    if more > 1:
        return f" ({1 + more:.0f} times)"
    return f" ({'+' if more >= 0 else '−'}{percent(abs(more))})"


def after_first_answer(step: Timeline) -> dict[str, tuple[int, int]]:
    """The view of a step's timeline in which the host goes on after its first wait; none without a wait."""
    asked = min((s for s in step.on(Activity.SYNC)), key=lambda s: s.start_ns, default=None)
    if asked is None:
        return {}
    lo, hi = step.window_ns
    return {"after the first answer": (max(lo, asked.end_ns - AROUND_NS), min(hi, asked.end_ns + 4 * AROUND_NS))}


def lines_table(answers: Answers) -> str:
    """A step of each loop as a bar, split by the line in which a stopwatch puts the time."""
    rows = [(name, answers.watched[key]) for key, name in LINES.items() if answers.has(key)]
    longest_ns = max(seen.step_ns for _, seen in rows)
    legend = "".join(f'<span><i style="background:{fill}"></i>{what}</span>' for what, fill in PARTS)
    return (
        f'<div class="gt-legend">{legend}</div><table class="gt-ledger gt-useful">'
        '<caption class="gt-hidden">Where a stopwatch puts a step, by loop</caption><thead class="gt-hidden"><tr>'
        '<th scope="col">Loop</th><th scope="col">Bar</th><th scope="col">Step</th><th scope="col">Lines</th></tr>'
        f"</thead><tbody>{''.join(_loop(name, seen, longest_ns) for name, seen in rows)}</tbody></table>"
    )


def _loop(name: str, seen: Stopwatch, longest_ns: float) -> str:
    bars, at = "", 0.0
    for ns, (_, fill) in zip((seen.batch_ns, seen.launching_ns, seen.read_ns), PARTS, strict=True):
        width = 100 * ns / longest_ns
        bars += f'<i style="left:{at:.2f}%;width:{width:.2f}%;min-width:0;background:{fill}"></i>' if ns else ""
        at += width
    words = f"{percent(seen.batch_share)} batch, {percent(seen.read_share)} loss"
    return (
        f'<tr class="gt-gauge"><th scope="row">{escape(name)}</th><td class="gt-bar"><div>{bars}</div></td>'
        f'<td class="gt-num">{escape(duration(seen.step_ns))}</td><td class="gt-why">{escape(words)}</td></tr>'
    )


def answers_elsewhere(answers: Answers) -> str:
    """What public threads reported, what this run has, and whether the two agree."""
    rows = "".join(_thread(theirs, ours) for theirs, ours in answers.threads())
    return (
        '<table class="gt-expect"><caption class="gt-hidden">Public threads beside this run</caption>'
        '<thead><tr><td></td><th scope="col">They saw</th><th scope="col">Here</th><th scope="col">So it is</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def agree(theirs: Reference, ours: float) -> str:
    """Whether our number says what theirs says, in words; a share is an effect, and so is a ratio other than one."""
    low, high = min(theirs.values), max(theirs.values)
    if theirs.unit == "times" and high == 1.0:
        return "so here too" if abs(ours - 1) < UNCHANGED else "not so here"
    if ours < (1 + NOTHING if theirs.unit == "times" else NOTHING):
        return "not so here"
    if ours * ALIKE < low:
        return "the same way, less"
    return "the same way, more" if ours > high * ALIKE else "so here too"


def _thread(theirs: Reference, ours: float) -> str:
    seen = " to ".join(_amount(theirs, value) for value in sorted(theirs.values))
    return (
        f'<tr><th scope="row">{escape(theirs.what)}<small>{escape(theirs.source)} · {escape(theirs.note)}</small></th>'
        f'<td><span class="gt-only-narrow">They saw</span>{seen}</td>'
        f'<td><span class="gt-only-narrow">Here</span><b>{_amount(theirs, ours)}</b></td>'
        f'<td style="white-space:nowrap">{agree(theirs, ours)}</td></tr>'
    )


def _amount(theirs: Reference, value: float) -> str:
    if theirs.unit == "share":
        return percent(max(0.0, value))
    return f"{value:.2f}" if value < 3 else f"{value:.0f}"
