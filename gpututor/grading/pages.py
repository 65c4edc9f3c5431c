"""Pages that stand alone: one HTML file, no scripts, no requests, everything that others wrote escaped.

A page says so to the browser as well: its policy allows its own style and nothing else, so that even what slipped
through could not run.
"""

from __future__ import annotations

from html import escape as _escape

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #14181d; --soft: #5b6370; --line: #dde1e7; --card: #f6f7f9;
  --good: #1f7a72; --part: #9a5a00; --bad: #b03d2e; --blue: #2f62c1; --none: #8a93a0;
  --good-fill: #2d9c93; --part-fill: #ed9525; --bad-fill: #cf6a5c; --none-fill: #c3c9d2 }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e6e9ee; --soft: #a3abb8; --line: #323843;
  --card: #1c2027; --good: #5ec7bd; --part: #f2ad5a; --bad: #f0958a; --blue: #8db4ff; --none: #8a93a0;
  --bad-fill: #b8574a; --none-fill: #4b5361 } }
* { box-sizing: border-box }
html { background: var(--paper); color: var(--ink); font: 1rem/1.5 "PT Sans", "Segoe UI", Helvetica, Arial, sans-serif }
body { margin: 0 auto; max-width: 54rem; padding: 1.5rem 1.1rem 4rem }
h1, h2, h3 { font-family: Lora, Georgia, serif; line-height: 1.25; overflow-wrap: anywhere }
h1 { font-size: 1.7rem; margin: 0 0 .3rem } h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem }
h3 { font-size: 1.02rem; margin: 0 }
p { margin: .35rem 0; overflow-wrap: anywhere } .soft { color: var(--soft) } .small { font-size: .92rem }
.cards { display: grid; gap: .8rem } .card { border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem;
  background: var(--card); min-width: 0 }
.head { display: flex; flex-wrap: wrap; gap: .2rem 1rem; justify-content: space-between; align-items: baseline }
.points { font-variant-numeric: tabular-nums; white-space: nowrap; font-weight: 600 }
.right { color: var(--good) } .partial { color: var(--part) } .wrong, .judged { color: var(--bad) }
.unanswered { color: var(--soft) }
.bar { display: flex; height: .8rem; border-radius: 4px; overflow: hidden; background: var(--line); margin: .45rem 0 }
.bar i { display: block } .f-right { background: var(--good-fill) } .f-partial { background: var(--part-fill) }
.f-wrong, .f-judged { background: var(--bad-fill) } .f-unanswered { background: var(--none-fill) }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; color: var(--soft); font-size: .92rem;
  margin-bottom: .7rem }
.key i { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px; margin-right: .35rem;
  vertical-align: -.08rem }
h3 + ul { margin-top: .2rem } ul + h3 { margin-top: .8rem }
ul { margin: .35rem 0; padding-left: 1.2rem } li { margin: .2rem 0; overflow-wrap: anywhere }
ul.checks { list-style: none; padding: 0 } ul.checks b { display: inline-block; min-width: 2.2rem }
.note { border-left: 3px solid var(--blue); padding-left: .7rem; margin: .5rem 0 }
.warn { border-left: 3px solid var(--bad-fill); padding-left: .7rem; margin: .5rem 0 }
table { border-collapse: collapse; width: 100%; font-size: .95rem } .scroll { overflow-x: auto }
th { text-align: left; color: var(--soft); font-weight: 600 }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
a { color: var(--blue) } summary { cursor: pointer; color: var(--blue) }
pre { font: .82rem/1.4 "Fira Mono", Consolas, Menlo, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
  background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: .5rem .6rem; margin: .4rem 0 }
.two { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)) }
.spread { display: flex; align-items: end; gap: 2px; text-align: center; font-size: .8rem; margin-top: 1.2rem }
.spread div { flex: 1; min-width: 0 } .spread span { display: block; line-height: 1.3 }
.spread i { display: block; background: var(--blue); border-radius: 3px 3px 0 0; border-bottom: 1px solid var(--line) }
.figures { display: flex; flex-wrap: wrap; gap: .6rem 2.2rem; margin: 1rem 0 }
.figures div b { display: block; font: 600 1.5rem/1.2 Lora, Georgia, serif; font-variant-numeric: tabular-nums }
@media print { .card { break-inside: avoid } body { max-width: none; padding: 0 } }
"""


def escape(text: object) -> str:
    """A text that is no markup, in an element or in an attribute.

    >>> escape("<b title='x'>&")
    '&lt;b title=&#x27;x&#x27;&gt;&amp;'
    """
    return _escape(str(text), quote=True)


def page(title: str, body: str) -> str:
    """The whole file; `body` is HTML whose texts are escaped."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>{body}</body></html>\n"
    )
