"""A whole step in one thin picture: slices of time, each a stack of what the GPU did in it."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from gpututor.charts.colours import COLOUR, Pattern, bands, pattern
from gpututor.charts.lanes import Drawn, Idle
from gpututor.charts.segments import clipped, flattened, with_idle
from gpututor.ledger import Account
from gpututor.text import duration
from gpututor.timeline import Activity, Timeline

ORDER = (Account.BUSY_UNSPLIT, *(a for a in COLOUR if a is not Account.BUSY_UNSPLIT))
"""From the floor of a slice upwards: kernels first."""

ON_GPU = (Activity.KERNEL, Activity.MEMSET, Activity.COPY_ON_GPU, Activity.COLLECTIVE)


def slices(timeline: Timeline, idle: Idle, n_slices: int) -> list[dict[Account, float]]:
    """The GPU's time in each of `n_slices` equal slices of the window, as shares of a slice by account.

    Copies run beside kernels and are not counted: where one holds the GPU up, `idle` says so.
    """
    return _slices(Drawn(timeline, idle), n_slices)


@lru_cache(maxsize=8)
def _slices(drawn: Drawn, n_slices: int) -> list[dict[Account, float]]:
    timeline, idle = drawn.timeline, drawn.idle
    lo, hi = timeline.window_ns
    kernels = flattened(timeline.on(*ON_GPU))
    wide_ns = (hi - lo) / n_slices
    out: list[dict[Account, float]] = [{} for _ in range(n_slices)]
    for s in with_idle(clipped(kernels, timeline.window_ns), idle, timeline.window_ns):
        begin, end = s.start_ns - lo, s.end_ns - lo
        for k in range(int(begin / wide_ns), min(n_slices, int(end / wide_ns) + 1)):
            inside_ns = min(end, (k + 1) * wide_ns) - max(begin, k * wide_ns)
            if inside_ns > 0:
                out[k][s.account] = out[k].get(s.account, 0.0) + inside_ns / wide_ns
    return out


def strip_svg(
    timeline: Timeline,
    idle: Idle,
    window_ns: tuple[int, int] | None = None,
    n_slices: int = 120,
    height_px: int = 40,
) -> str:
    """The timeline as an SVG string, kernels at the floor; outside `window_ns` it is veiled."""
    lo, hi = timeline.window_ns
    used: set[Account] = set()
    bars = []
    wide = 1000 / n_slices
    for k, shares in enumerate(slices(timeline, idle, n_slices)):
        floor = 100.0
        for account in ORDER:
            share = shares.get(account, 0.0)
            if share < 1e-4:
                continue
            used.add(account)
            tall = 100 * share
            floor -= tall
            bars.append(_rect(k * wide, floor, wide + 0.4, tall, _fill(account)))
    whole = "The whole step" if len(timeline.steps) < 2 else "All of it"
    spoken = escape(f"{whole}, {duration(hi - lo)}" + (", with the chosen window marked" if window_ns else ""))
    veils = _veils((window_ns[0] - lo) / (hi - lo), (window_ns[1] - lo) / (hi - lo)) if window_ns else ""
    return (
        f'<svg class="gt-strip" viewBox="0 0 1000 100" preserveAspectRatio="none" height="{height_px}" '
        f'shape-rendering="crispEdges" role="img" '
        f'aria-label="{spoken}">{_gradients(used)}{"".join(bars)}{veils}</svg>'
    )


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>'


def _fill(account: Account) -> str:
    return COLOUR[account] if pattern(account) is Pattern.SOLID else f"url(#gt-{account.name.lower()})"


def _gradients(accounts: set[Account]) -> str:
    """Definitions for the patterned accounts in use; the same name always means the same pattern."""
    out = []
    for account in sorted(accounts, key=lambda a: a.name):
        if pattern(account) is Pattern.SOLID:
            continue
        stops = "".join(
            f'<stop offset="{at:g}" stop-color="{colour}"/>'
            for begin, end, colour in bands(account)
            for at in (begin, end)
        )
        name = f"gt-{account.name.lower()}"
        out.append(f'<linearGradient id="{name}" x1="0" x2="0" y1="1" y2="0">{stops}</linearGradient>')
    return f"<defs>{''.join(out)}</defs>" if out else ""


def _veils(begin_share: float, end_share: float) -> str:
    """What covers the time outside the window, and a thin frame around what is inside."""
    x0 = 1000 * min(max(begin_share, 0.0), 1.0)
    x1 = min(1000.0, max(1000 * end_share, x0 + 3))
    return (
        f'<rect class="gt-veil" x="0" y="0" width="{x0:.1f}" height="100"/>'
        f'<rect class="gt-veil" x="{x1:.1f}" y="0" width="{1000 - x1:.1f}" height="100"/>'
        f'<rect class="gt-frame" x="{x0:.1f}" y="0" width="{x1 - x0:.1f}" height="100"/>'
    )
