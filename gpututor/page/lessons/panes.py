"""Task Manager's graphs of a card that trains, as its owner sees them: drawn from a made-up machine's readings."""

from __future__ import annotations

import random

import marimo as mo

from gpututor.doctor.faults import Fault, planted
from gpututor.page.figures import figure
from gpututor.page.lessons.machines import SEED
from gpututor.page.parts import escape
from gpututor.text import percent

WIDTH, HEIGHT, N_POINTS = 200, 70, 60  # a minute, as Task Manager shows it


def shares() -> dict[str, float]:
    """Each graph's level. The first four are those that Windows shows; Cuda has to be chosen.

    What copies and video take beside a training is our choice.
    """
    patient = planted(Fault.GAUGE, SEED)
    return {
        "3D": patient.graph_share or 0.0,
        "Copy": 0.03,
        "Video Encode": 0.0,
        "Video Decode": 0.0,
        "Cuda": patient.gpu.kernel_time_share or 0.0,
    }


def panes() -> mo.Html:
    """The graphs side by side, Cuda last and marked."""
    drawn = "".join(_pane(name, share) for name, share in shares().items())
    return figure(
        "Task Manager, while machine J trains",
        '<span class="gt-tag gt-simulated">Made up</span> a minute of each engine',
        f'<div style="display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.8rem">{drawn}</div>',
        note="The first four are what Windows shows. The name above each graph is a list: choose Cuda, or Compute_0 "
        "where there is no Cuda.",
        wide=True,
    )


def _pane(name: str, share: float) -> str:
    dice = random.Random(name)
    levels = [min(1.0, max(0.0, share + dice.uniform(-0.012, 0.012))) if share else 0.0 for _ in range(N_POINTS)]
    points = [(k * WIDTH / (N_POINTS - 1), HEIGHT * (1 - level)) for k, level in enumerate(levels)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    colour = "var(--gt-yours)" if name == "Cuda" else "var(--gt-busy)"
    return (
        f'<div><div style="display:flex;justify-content:space-between"><b>{escape(name)}</b>'
        f"<span>{escape(percent(share))}</span></div>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(name)}: {escape(percent(share))}" style="width:100%;height:4.4rem;display:block;'
        'border:1px solid var(--gt-line);border-radius:4px">'
        f'<polygon points="0,{HEIGHT} {line} {WIDTH},{HEIGHT}" fill="{colour}" fill-opacity=".22"/>'
        f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5" '
        'vector-effect="non-scaling-stroke"/></svg></div>'
    )
