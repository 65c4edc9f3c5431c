"""What was expected beside what was seen, with the room it is allowed and where that comes from."""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.expect import Difference
from gpututor.page.parts import escape

WORDS = {"within": "within the band", "outside": "outside the band", "not known": "nothing to compare"}


def expected_table(rows: Sequence[tuple[str, Difference]]) -> str:
    """One line for each quantity: its name, what was seen, the expected range, the verdict, and the source; as HTML."""
    lines = "".join(_line(name, difference) for name, difference in rows)
    return (
        '<table class="gt-expect"><caption class="gt-hidden">Seen beside expected</caption>'
        '<thead><tr><td></td><th scope="col">Seen</th><th scope="col">Expected</th><th scope="col">So it is</th></tr>'
        f"</thead><tbody>{lines}</tbody></table>"
    )


def _line(name: str, difference: Difference) -> str:
    band = difference.band
    room = f"{band.in_words(band.expected)}, from {band.in_words(band.low)} to {band.in_words(band.high)}"
    return (
        f'<tr class="gt-{difference.verdict.replace(" ", "-")}"><th scope="row">{escape(name)}'
        f"<small>{escape(band.source)}</small></th>"
        f"<td><b>{escape(band.in_words(difference.seen))}</b></td><td>{escape(room)}</td>"
        f"<td>{WORDS[difference.verdict]}</td></tr>"
    )
