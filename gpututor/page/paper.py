"""Pages to print: one HTML file each, black on white, without scripts or requests, for A4 and Letter alike.

A page says so to the browser as well: its policy allows its own style and nothing else, so that even what slipped
through could not run.
"""

from __future__ import annotations

from gpututor.page.parts import escape

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MADE_BY = "gpututor"
STYLE = """
:root { color-scheme: light }
* { box-sizing: border-box }
html { background: #fff; color: #14181d; -webkit-text-size-adjust: 100% }
body { font: 9pt/1.32 "PT Sans", "Segoe UI", Helvetica, Arial, sans-serif; max-width: 186mm;
  margin: 0 auto; padding: 8mm 0; font-size-adjust: .5 }
h1 { font: 600 20pt/1.1 Lora, Georgia, serif; margin: 0 0 1.5mm; overflow-wrap: anywhere }
h2 { font: 600 12pt/1.2 Lora, Georgia, serif; margin: 4mm 0 1.5mm }
p { margin: 0 0 2mm; overflow-wrap: anywhere }
.soft { color: #4b535c }
code { font: .92em/1 "Fira Mono", Consolas, Menlo, monospace; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; font-weight: 400; border-top: .3pt solid #c9ced4 }
thead th { color: #4b535c; border: 0 }
tr { break-inside: avoid }
@media screen { body { padding: 8mm 4mm; max-width: 194mm } }
@media screen and (max-width: 640px) { html { font-size: 100% } body { font-size: 14px } }
@media print { body { padding: 0 } }
"""


def paper(title: str, kind: str, style: str, body: str) -> str:
    """The whole file. `kind` is written into it, so that a command knows what it may replace; `body` is HTML."""
    whole = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="{MADE_BY} {escape(kind)}">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>\n<body>{body}</body></html>\n"
    )
    return whole.encode("utf-8", "replace").decode("utf-8")  # half a character, as a damaged file may hold
