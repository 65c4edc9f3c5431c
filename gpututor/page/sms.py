"""A card as a picture of its SMs: one square each, filled as high as the share of time in which it has work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpututor.page.parts import escape
from gpututor.text import percent

COLUMNS = 20
CELL, SIDE = 10, 8  # one square and the room it stands in, in the units of the picture


@dataclass(frozen=True, slots=True)
class SmPicture:
    """A name, for each SM the share of time (0 to 1) in which it has a block, and one sentence on it."""

    name: str
    shares: Sequence[float]
    words: str


def sm_picture(shares: Sequence[float], spoken: str) -> str:
    """The squares as an SVG, row by row from the top left; `spoken` is the picture's text for screen readers."""
    n_columns = max(1, min(COLUMNS, len(shares)))
    n_rows = max(1, -(-len(shares) // n_columns))
    squares = "".join(_square(k % n_columns, k // n_columns, share) for k, share in enumerate(shares))
    size = f"{n_columns * CELL} {n_rows * CELL}"
    return (
        f'<svg class="gt-sms" role="img" aria-label="{escape(spoken)}" viewBox="0 0 {size}" '
        f'xmlns="http://www.w3.org/2000/svg">{squares}</svg>'
    )


def _square(column: int, row: int, share: float) -> str:
    share = min(1.0, max(0.0, share))
    x, y = column * CELL + (CELL - SIDE) / 2, row * CELL + (CELL - SIDE) / 2
    tall = SIDE * share
    ground = f'<rect class="gt-sm" x="{x:g}" y="{y:g}" width="{SIDE}" height="{SIDE}" rx="1"/>'
    if not share:
        return ground
    return ground + (
        f'<rect class="gt-sm-busy" x="{x:g}" y="{y + SIDE - tall:.2f}" width="{SIDE}" height="{tall:.2f}" rx="1"/>'
    )


def sm_pictures(pictures: Sequence[SmPicture]) -> str:
    """Several pictures side by side, each with its name, the mean share of the SMs that work, and its sentence."""
    return '<div class="gt-smgrid">' + "".join(map(_one, pictures)) + "</div>"


def _one(picture: SmPicture) -> str:
    mean = sum(picture.shares) / len(picture.shares) if picture.shares else None
    spoken = f"{picture.name}: {percent(mean)} of the SMs have work. {picture.words}"
    return (
        f'<div><p class="gt-smname"><b>{escape(picture.name)}</b><span>{escape(percent(mean))}</span></p>'
        f'{sm_picture(picture.shares, spoken)}<p class="gt-smwords">{escape(picture.words)}</p></div>'
    )
