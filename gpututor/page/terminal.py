"""What a command prints, as text on a page: a copy for many columns, and one for a phone's few."""

from __future__ import annotations

from gpututor.page.parts import escape


def terminal(wide: str, narrow: str) -> str:
    """The text of a terminal as HTML; a page shows the one that fits it."""
    return (
        f'<pre class="gt-console gt-only-wide">{escape(wide)}</pre>'
        f'<pre class="gt-console gt-only-narrow">{escape(narrow)}</pre>'
    )
