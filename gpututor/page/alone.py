"""A page that stands alone: one HTML file without scripts or requests, light and dark as the reader's system is."""

from __future__ import annotations

import re

from gpututor import paths
from gpututor.page.parts import escape

BASE = """
:root { --background: #fff; --foreground: #14181d; --text-font: "PT Sans", "Segoe UI", Helvetica, Arial, sans-serif;
  --heading-font: Lora, Georgia, serif; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --background: #14171c; --foreground: #e6e9ee } }
html { background: var(--background); color: var(--foreground) }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 4rem; display: grid; gap: 2.2rem }
body > * { min-width: 0; margin: 0 }
.gt > h2 { font: 600 1.5rem/1.25 var(--heading-font); margin: 0 0 .8rem }
code { font: .92em "Fira Mono", Consolas, Menlo, monospace; overflow-wrap: anywhere }
.gt-notes-list { margin: 0; padding-left: 1.1rem; color: var(--gt-soft) }
.gt-trouble { border-left: 3px solid var(--gt-bad); padding-left: .8rem }
@media print { body { max-width: none; padding: 0 } .gt-card { break-inside: avoid } }
"""


LINK_INTO_THE_COURSE = re.compile(r'<a href="\?file=[^"]*">(.*?)</a>', re.DOTALL)


def without_links(text: str) -> str:
    """HTML of the lessons' furniture without its links into the course, which lead nowhere from such a page."""
    return LINK_INTO_THE_COURSE.sub(r"\1", text)


def alone(title: str, body: str, style: str = "") -> str:
    """The whole file. `body` is HTML; `style` comes after the look of the lessons.

    Raises:
        DataFileError: the lessons' look isn't installed.
    """
    look = (paths.lessons_dir() / "look.css").read_text("utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{look}{BASE}{style}</style></head><body>{body}</body></html>"
    )
