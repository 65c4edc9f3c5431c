"""The cheat sheet: symptom, gauge, cause, fix, lesson. All of it is read from the causes in the library.

What stands there is what findings say, with the thresholds from which they are said, so the two can't drift apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpututor.causes import KNOWN, Cause, Known, Thresholds, cause_of
from gpututor.charts import WORDS, css_fill
from gpututor.expect.explanations import explanations
from gpututor.ledger import MEANING, Account
from gpututor.page.course import LESSONS, Lesson, lesson
from gpututor.page.paper import MADE_BY, paper
from gpututor.page.parts import coded, escape
from gpututor.text import NBSP

TITLE = "Where a GPU's time goes"
LEAD = (
    "Find what you see, look at the gauge, change one thing, and measure again. Below each cause stands its account in "
    "the ledger, with the share of the time from which it is worth naming. Begin with the largest."
)
HEADS = ("You see", "Gauge that proves it", "Cause", "What to change", "Lesson")
NO_ROW = (Account.BUSY_UNSPLIT, Account.USEFUL)
"""Accounts that nothing is to be done about: one says that the source lacks figures, the other is the goal."""
CHECKS = ("gpututor doctor", "gpututor watch", "gpututor run train.py", "nvidia-smi dmon -s pucm")
KIND = "cheat sheet"
MADE_FROM = f"Generated from gpututor/causes by: gpututor cheatsheet --format md ({MADE_BY} {KIND})"
STYLE = """
@page { margin: 6mm 12mm }
body { font-size: 7.5pt; line-height: 1.2 }
h1 { font-size: 17pt }
th, td { padding: .5mm 2mm .5mm 0 }
td:last-child { padding-right: 0; white-space: nowrap }
th[scope="row"] { font-weight: 700 }
small { display: block; font-size: 1em; font-weight: 400; color: #4b535c }
i { display: inline-block; width: 2.4mm; height: 2.4mm; border-radius: .5mm; margin-right: 1.2mm; vertical-align: -.2mm;
  print-color-adjust: exact; -webkit-print-color-adjust: exact }
.foot { margin: 2.5mm 0 0 }
@media screen and (max-width: 640px) {
  body { font-size: 14px; line-height: 1.4 }
  thead { position: absolute; clip-path: inset(50%) }
  table, tbody, tr, td, th { display: block; border: 0; padding: .1rem 0; width: auto }
  tr { border-top: 1px solid #c9ced4; padding: .6rem 0 }
  td:last-child { white-space: normal }
  td[data-head]::before { content: attr(data-head) ": "; color: #4b535c }
}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the sheet. `change` is Markdown; `lessons` are all about it, the main one first."""

    cause: Cause
    known: Known

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """The lesson about the cause, then those about its accounts."""
        main = lesson(self.known.lesson)
        return (main, *(each for each in lessons_on(*self.known.accounts) if each is not main))

    @property
    def least(self) -> str:
        """Its accounts in the ledger, and from which share they are named; empty where no share decides."""
        names = _begun(" and ".join(WORDS[account].lower() for account in self.known.accounts))
        if self.known.least is None:
            return names
        return f"{names} ≥{NBSP}{100 * self.known.least(Thresholds()):g}{NBSP}%"


def lines() -> tuple[Line, ...]:
    """A line for each cause: what waits first, then what is slow, then doubts."""
    return tuple(Line(cause, known) for cause, known in KNOWN.items())


def lessons_on(*accounts: Account) -> tuple[Lesson, ...]:
    """The lessons about any of these rows of the ledger, in order."""
    return tuple(each for each in LESSONS if set(accounts) & set(each.topics))


def without_cause() -> tuple[Account, ...]:
    """Accounts that can be put right and that no cause claims."""
    return tuple(account for account in Account if cause_of(account) is None and account not in NO_ROW)


def as_html() -> str:
    """One page to print."""
    head = "".join(f'<th scope="col">{name}</th>' for name in HEADS)
    widths = "".join(f'<col style="width:{share}%">' for share in (16.5, 19.5, 20.5, 38, 5.5))
    others = "; ".join(
        f"{escape(WORDS[account])}: {escape(MEANING[account])} (lesson {_numbers(lessons_on(account))})"
        for account in without_cause()
    )
    also = f'<p class="foot"><b>Also in the ledger.</b> {others}.</p>' if others else ""
    checks = f" {NBSP}·{NBSP} ".join(f"<code>{escape(each)}</code>" for each in CHECKS)
    return paper(
        TITLE,
        KIND,
        STYLE,
        f'<h1>{escape(TITLE)}</h1><p class="soft">{escape(LEAD)}</p><table><colgroup>{widths}</colgroup>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, lines()))}</tbody></table>"
        f'{also}<p class="foot soft">Quick checks: {checks}</p>',
    )


def _row(line: Line) -> str:
    known = line.known
    mark = f'<i style="background:{css_fill(known.accounts[0])}"></i>' if known.accounts else ""
    least = f"<small>{mark}{escape(line.least)}</small>" if known.accounts else ""
    main, *others = line.lessons
    more = f"<small>{_numbers(others)}</small>" if others else ""
    return (
        f'<tr><td data-head="{HEADS[0]}">{coded(_begun(known.symptom))}</td>'
        f'<td data-head="{HEADS[1]}">{coded(_begun(known.gauge))}</td>'
        f'<th scope="row">{escape(line.cause.value)}{least}</th><td>{coded(known.change)}</td>'
        f'<td data-head="{HEADS[4]}"><b>{main.number}</b>{more}</td></tr>'
    )


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _numbers(several: Sequence[Lesson]) -> str:
    return ", ".join(str(each.number) for each in several)


def as_markdown() -> str:
    """The same as a table in Markdown, and below it what could explain an account that is larger than predicted."""
    head = f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}"
    rows = "\n".join(f"| {' | '.join(map(_cell, _cells(line)))} |" for line in lines())
    also = "\n".join(
        f"- {WORDS[account]}: {MEANING[account]}. Lesson {_titles(lessons_on(account))}." for account in without_cause()
    )
    perhaps = "\n".join(
        f"- {WORDS[account]}: {'; '.join(found)}." for account in Account if (found := explanations(account, more=True))
    )
    return (
        f"<!-- {MADE_FROM} -->\n\n# {TITLE}\n\n{LEAD}\n\n{head}\n{rows}\n\n## Also in the ledger\n\n{also}\n\n"
        f"## Larger than predicted\n\nWhat could explain it, the likeliest first.\n\n{perhaps}\n"
    )


def _cells(line: Line) -> tuple[str, str, str, str, str]:
    known = line.known
    cause = f"**{line.cause.value}**" + (f"<br>{line.least}" if known.accounts else "")
    return _begun(known.symptom), _begun(known.gauge), cause, known.change, _titles(line.lessons)


def _titles(several: tuple[Lesson, ...]) -> str:
    return ", ".join(f"{each.number} {each.title}" for each in several)


def _cell(text: str) -> str:
    """A text that stays in its cell of a table in Markdown."""
    return re.sub(r"\s+", " ", text).replace("|", r"\|")


def as_json() -> str:
    """The same as data: one object a cause; texts are Markdown."""
    return (
        json.dumps({"title": TITLE, "kind": f"{MADE_BY} {KIND}", "causes": [_data(line) for line in lines()]}, indent=1)
        + "\n"
    )


def _data(line: Line) -> dict[str, Any]:
    known = line.known
    return {
        "cause": line.cause.name.lower(),
        "says": line.cause.value,
        "symptom": known.symptom,
        "gauge": known.gauge,
        "accounts": [account.value for account in known.accounts],
        "named_from_share": known.least(Thresholds()) if known.least else None,
        "change": known.change,
        "lesson": known.lesson,
        "lessons": [each.number for each in line.lessons],
        "larger_than_predicted": [each for account in known.accounts for each in explanations(account, more=True)],
    }
