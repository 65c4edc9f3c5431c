"""A field of named spots: one quantity against another, each spot a thing with a name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import altair as alt

from gpututor.charts.colours import BUSY_COLOUR, YOURS_COLOUR
from gpututor.charts.style import Cell, calm, table

NEAR_X, NEAR_Y = 0.16, 0.055  # of the axes: names whose spots lie nearer would run into each other
RIGHT_EDGE = 0.72  # of the level axis: further right a name stands on the left of its spot


Slot = Literal["right", "left", "below", "above"]
"""Where a name stands beside its spot."""
_SLOTS: Mapping[Slot, tuple[int, int, Literal["left", "right", "center"]]] = {
    "right": (10, 1, "left"),
    "left": (-10, 1, "right"),
    "below": (0, 16, "center"),
    "above": (0, -14, "center"),
}
"""Pixels to the right and down, and the text's own anchor."""
LIFTS: Mapping[Slot, float] = {"right": 0.0, "left": 0.0, "below": -0.06, "above": 0.06}


@dataclass(frozen=True, slots=True)
class Spot:
    """One thing in a field: where it lies, its name, and whether it is the one to look at, or a hollow one."""

    x: float
    y: float
    name: str
    marked: bool = False
    hollow: bool = False


def spots(
    things: Sequence[Spot], *, x_title: str, y_title: str, height_px: int = 300, x_format: str = "~g"
) -> alt.LayerChart:
    """Spots with their names beside them; both axes multiply by ten. A name that has no room is told by its tooltip.

    Spots that aren't above zero on both axes are left out.
    """
    shown = [each for each in things if each.x > 0 and each.y > 0]
    x_range, y_range = _range([each.x for each in shown]), _range([each.y for each in shown])
    x = alt.X("x:Q", title=x_title, axis=_axis(x_range, x_format), scale=_scale(x_range))
    y = alt.Y("y:Q", title=y_title, axis=_axis(y_range, "$~g"), scale=_scale(y_range))
    layers: list[alt.Chart] = []
    for hollow, marked in ((True, False), (False, False), (False, True)):
        rows = [_row(each) for each in shown if (each.hollow, each.marked) == (hollow, marked)]
        if rows:
            colour = YOURS_COLOUR if marked else BUSY_COLOUR
            mark = alt.Chart(table(rows)).mark_point(
                filled=not hollow, size=130 if marked else 80, color=colour, opacity=1, strokeWidth=2
            )
            layers.append(mark.encode(x=x, y=y, tooltip=[alt.Tooltip("b:N", title="")]))
    for slot, (dx, dy, align) in _SLOTS.items():
        rows = [_row(each) for each, at in _named(shown, x_range, y_range) if at == slot]
        if rows:
            text = alt.Chart(table(rows)).mark_text(dx=dx, dy=dy, align=align, fontSize=13)
            layers.append(text.encode(x=x, y=y, text="b:N").properties(name=f"ink_{slot}"))
    if not layers:
        layers = [alt.Chart(table([], ("x", "y"))).mark_point().encode(x=x, y=y)]
    spoken = f"{y_title} against {x_title}: " + ", ".join(each.name for each in shown)
    return calm(alt.layer(*layers).properties(width="container", height=height_px), spoken)


def _row(each: Spot) -> dict[str, Cell]:
    return {"x": each.x, "y": each.y, "b": each.name}


def _range(values: Sequence[float]) -> tuple[float, float]:
    """A little more than the values span."""
    low, high = min(values, default=1.0), max(values, default=10.0)
    return low / 1.35, high * 1.35


def _scale(span: tuple[float, float]) -> alt.Scale:
    return alt.Scale(type="log", domain=list(span), nice=False)


def _axis(span: tuple[float, float], form: str) -> alt.Axis:
    low, high = (math.log10(each) for each in span)
    powers = [m * 10.0**k for k in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
    inside = [each for each in powers if span[0] <= each <= span[1]]
    values = inside if len(inside) <= 7 else [each for each in inside if f"{each:e}"[0] == "1"]
    return alt.Axis(format=form, values=values, grid=True, labelOverlap=True)


def _place(value: float, span: tuple[float, float]) -> float:
    """Where a value lies on a logarithmic axis, from 0 to 1."""
    low, high = (math.log(each) for each in span)
    return (math.log(value) - low) / (high - low)


def _named(
    shown: Sequence[Spot], x_range: tuple[float, float], y_range: tuple[float, float]
) -> list[tuple[Spot, Slot]]:
    """The spots whose names have room and where they stand, the marked ones and the full ones first."""
    named: list[tuple[Spot, Slot]] = []
    taken: list[tuple[float, float]] = []
    for each in sorted(shown, key=lambda one: (not one.marked, one.hollow)):
        x, y = _place(each.x, x_range), _place(each.y, y_range)
        beside: Slot = "left" if x > RIGHT_EDGE else "right"
        for slot in (beside, "below", "above"):
            at = (x, y + LIFTS[slot])
            if all(abs(at[0] - a) > NEAR_X or abs(at[1] - b) > NEAR_Y for a, b in taken):
                taken.append(at)
                named.append((each, slot))
                break
    return named
