"""The guess before the run: stored at once, locked by the run, compared afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import marimo as mo

from gpututor.page.parts import escape, html, markup
from gpututor.store import Try

NOTE = "Kept before anything runs, so that hindsight can't change it. A wrong guess costs nothing."


@dataclass(frozen=True, slots=True)
class Question:
    """What a reader guesses: the key under which the guess is kept, the text, and the options.

    Each option has a test: whether it is the answer if the run's outcome is this number.
    """

    key: str
    text: str
    options: Mapping[str, Callable[[float], bool]]

    def answer(self, outcome: float) -> str:
        """The option that fits an outcome of the run.

        >>> tests = {"slower": lambda times: times < 1, "faster": lambda times: times >= 1}
        >>> Question("bigger", "It gets…", tests).answer(2)
        'faster'
        """
        return next(option for option, fits in self.options.items() if fits(outcome))


def guess_control(
    options: Sequence[str], tries: Sequence[Try], keep: Callable[[str], None], *, locked: bool = False
) -> mo.ui.radio:
    """The options to choose from, one below the other; `keep` gets each choice at once.

    `tries` is what the store holds (`Store.tries`); the newest is chosen when the page opens.
    """
    newest = tries[-1].answer if tries else None
    return mo.ui.radio(list(options), value=newest if newest in options else None, on_change=keep, disabled=locked)


def guess_card(question: str, control: object, *, note: str = NOTE) -> mo.Html:
    """The question with its options."""
    return html(
        f'<section class="gt gt-card gt-guess" role="group" aria-label="{escape(question)}">'
        f'<h2 class="gt-small">Your guess first</h2><p class="gt-question">{escape(question)}</p>'
        f'{markup(control)}<p class="gt-note">{escape(note)}</p></section>'
    )


def guess_locked(question: str, tries: Sequence[Try], answer: str | None) -> mo.Html:
    """The card once a run has begun: the first guess, the last one if it differs, and what it was.

    `answer` is None while nothing is known yet. The run decides it, never the lesson's author.
    """
    said = [("You said", str(tries[0].answer) if tries else "nothing")]
    if len(tries) > 1:
        said.append(("Then you said", str(tries[-1].answer)))
    if answer is not None:
        said.append(("It was", answer))
    pairs = "".join(f'<p class="gt-said"><span>{escape(k)}</span><b>{escape(v)}</b></p>' for k, v in said)
    return html(
        '<section class="gt gt-card gt-guess"><h2 class="gt-small">Your guess</h2>'
        f'<p class="gt-question">{escape(question)}</p><div class="gt-pair">{pairs}</div></section>'
    )
