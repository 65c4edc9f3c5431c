"""The few pages that the front shows itself: the door with and without a key, and what else it has to say."""

from __future__ import annotations

from html import escape

STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#60646c;--line:#d9d9e0;--paper:#fff;--mark:#0b68cb}
@media(prefers-color-scheme:dark){:root{--ink:#edeef0;--soft:#b0b4ba;--line:#43484e;--paper:#111113;--mark:#70b8ff}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:3rem auto;padding:0 1rem}h1{font-size:1.5rem}a{color:var(--mark)}
p{max-width:40rem}small,.soft{color:var(--soft)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.4rem .8rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top}
""".replace("\n", "")

NO_KEY = "Open this course from your own address, which your instructor has given you; without it nothing runs here."
KEY_UNKNOWN = "This address lets nobody in any more; ask your instructor for your new one."
NOT_YOURS = "This page is the instructor's; your lessons are on the front page."
ELSEWHERE = "There is no such page in this workshop; your lessons are on the front page."


def page(title: str, body: str, head: str = "") -> bytes:
    """A whole page; `body` and `head` are HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"{head}<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>"
    ).encode()


def sentence(text: str) -> bytes:
    """A page that says one thing."""
    return page("gpututor", f"<h1>gpututor</h1><p>{escape(text)}</p>")


def welcome(path: str) -> bytes:
    """The page that leads from an address with a key to the same one without it.

    It is no redirect: a browser that follows a link from a mail program wouldn't send its new cookie along, because
    somebody else's page has set out on that way. From this page it sets out anew.
    """
    to = escape(path)
    head = f'<meta http-equiv="refresh" content="0;url={to}">'
    return page("gpututor", f'<h1>gpututor</h1><p><a href="{to}">Open the course</a></p>', head)
