"""The question of lesson 7 as a picture: rows that lie in memory, and one batch of them."""

from __future__ import annotations

from gpututor.page.parts import escape

COLUMNS, LINES = 32, 8
SIZE, GAP = 8, 3


def rows_to_batch(rows: str, batch: str) -> str:
    """A field of small squares, an arrow with a question mark, one bar; the texts stand below the two."""
    pitch = SIZE + GAP
    width, height = COLUMNS * pitch - GAP, LINES * pitch - GAP
    squares = "".join(
        f'<rect x="{k % COLUMNS * pitch}" y="{k // COLUMNS * pitch}" width="{SIZE}" height="{SIZE}" rx="1.5"/>'
        for k in range(COLUMNS * LINES)
    )
    bar_x = width + 96
    return (
        f'<svg class="gt-rows" viewBox="0 0 {bar_x + 100} {height + 32}" role="img" '
        f'aria-label="{escape(rows)} become {escape(batch)}; how, is the question" '
        'style="width:100%;max-width:36rem;height:auto;margin-top:1rem" font-family="var(--text-font)" font-size="19">'
        f'<g fill="var(--gt-busy)">{squares}<rect x="{bar_x}" y="0" width="22" height="{height}" rx="3"/></g>'
        f'<g stroke="currentColor" stroke-width="1.5" fill="none" opacity="0.6">'
        f'<path d="M{width + 12} {height / 2}H{bar_x - 14}m-7 -6l7 6l-7 6"/></g>'
        f'<text x="{(width + bar_x) / 2}" y="{height / 2 - 8}" text-anchor="middle" fill="currentColor" '
        f'font-size="24" font-weight="700">?</text>'
        f'<text x="0" y="{height + 24}" fill="currentColor">{escape(rows)}</text>'
        f'<text x="{bar_x}" y="{height + 24}" fill="currentColor">{escape(batch)}</text></svg>'
    )
