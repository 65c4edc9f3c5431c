"""Addresses of lessons that stay with the same reader: who reads stands in the address of each page."""

from __future__ import annotations

from urllib.parse import urlencode

import marimo as mo

from gpututor.page.course import Lesson

OF_THE_READER = ("learner", "instructor")
"""What a link hands on from the address of its page."""


def address(each: Lesson, **more: str) -> str:
    """Where a lesson opens, such as "?file=01_the_gauge.py&learner=ann"; `more` is added to its query."""
    query = {"file": each.file}
    if mo.running_in_notebook():
        asked = mo.query_params()
        query |= {name: str(asked[name]) for name in OF_THE_READER if name in asked}
    return "?" + urlencode(query | more)
