"""Thumbnails for the gallery: each lesson's step, drawn from three rows of text.

Made once, when the course changes, and kept beside the lessons: `python -m gpututor.page.thumbs [folder]`. A browser
turns SVG into PNG, so this needs playwright and chromium; nothing else here does. Transparent, so both themes fit.
"""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from gpututor.charts.colours import LINE_COLOUR, bands
from gpututor.ledger import Account
from gpututor.page.course import LESSONS, START, Lesson
from gpututor.paths import lessons_dir

WIDTH, HEIGHT = 600, 315  # what link previews show without cutting
MARGIN, N_TICKS = 40, 24
TICK = (WIDTH - 2 * MARGIN) / N_TICKS
ROWS = ((132, 38), (178, 12), (200, 70))  # top and height of host, copy and GPU
LOW_SHARE, PART_SHARE = 0.34, 0.6  # of the GPU row: a wait, and a kernel that fills the card in part

ACCOUNT = {
    "k": Account.BUSY_UNSPLIT,
    "w": Account.TOO_FEW_BLOCKS,
    "L": Account.LAUNCH_OVERHEAD,
    "I": Account.WAITING_FOR_INPUT,
    "C": Account.EXPOSED_COPY,
    "S": Account.BLOCKING_SYNC,
    "M": Account.EXPOSED_COMMUNICATION,
    "U": Account.START_UP,
    "P": Account.PAUSE,
}


def svg(lesson: Lesson) -> str:
    """The thumbnail as SVG text."""
    rows = "".join(
        "".join(_row(text, top, height, is_gpu=k == 2))
        for k, (text, (top, height)) in enumerate(zip(lesson.sketch, ROWS, strict=True))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
        f'<text x="{MARGIN - 3}" y="92" font-family="Lora, Georgia, serif" font-size="66" font-weight="600" '
        f'fill="{LINE_COLOUR}">{lesson.number}</text>{rows}</svg>'
    )


def _row(text: str, top: float, height: float, *, is_gpu: bool) -> Iterator[str]:
    """The bars of one row. Kernels stand apart tick by tick, as do launches on the host; a wait is one bar."""
    at = 0
    for mark, run in groupby(text):
        n = len(list(run))
        apart = mark in "kw" if is_gpu else mark == "L" and "." in text
        for k in range(0, n, 1 if apart else n):
            if mark in ACCOUNT:
                share = 1.0 if not is_gpu or mark == "k" else PART_SHARE if mark == "w" else LOW_SHARE
                tall = share * height
                yield from _bar(mark, at + k, 1 if apart else n, top + height - tall, tall)
        at += n


def _bar(mark: str, begin: int, n: int, y: float, height: float) -> Iterator[str]:
    """One bar of `n` ticks, in the bands of its account's pattern."""
    x, width = MARGIN + begin * TICK + 0.8, n * TICK - 1.6
    parts = bands(ACCOUNT[mark])
    for low, high, colour in parts:
        round_corner = ' rx="2"' if len(parts) == 1 else ""
        yield (
            f'<rect x="{x:.1f}" y="{y + height * (1 - high):.1f}" width="{width:.1f}" '
            f'height="{height * (high - low):.1f}"{round_corner} fill="{colour}"/>'
        )


def target(folder: Path, lesson: Lesson) -> Path:
    """Where the gallery looks for a lesson's thumbnail."""
    return folder / "__marimo__" / "assets" / lesson.file.removesuffix(".py") / "opengraph.png"


def write(folder: Path, lessons: Sequence[Lesson], chromium: str | None) -> list[Path]:
    """Draw the thumbnails of `lessons` below `folder` with the browser at path `chromium`; gives the files."""
    from playwright.sync_api import sync_playwright

    out = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for lesson in lessons:
            page.set_content(f"<style>{_font()} body {{ margin: 0; background: transparent }}</style>{svg(lesson)}")
            page.evaluate("document.fonts.ready")
            path = target(folder, lesson)
            path.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=path, omit_background=True)
            out.append(path)
        browser.close()
    return out


def _font() -> str:
    """The heading font that marimo ships, as a CSS rule; nothing where it ships another one."""
    import marimo

    found = sorted((Path(marimo.__file__).parent / "_static" / "assets").glob("Lora-*.woff2"))
    if not found:
        return ""
    data = base64.b64encode(found[0].read_bytes()).decode()
    return f"@font-face {{ font-family: Lora; font-weight: 400 700; src: url(data:font/woff2;base64,{data}) }}"


def main() -> None:
    """Draw the thumbnails of every lesson of the course."""
    parser = argparse.ArgumentParser(description="Draw the thumbnails of the lessons.")
    parser.add_argument("folder", nargs="?", type=Path, help="the folder of lessons; the course's own by default")
    parser.add_argument("--chromium", default=None, help="path of the browser; playwright's own by default")
    chosen = parser.parse_args()
    for path in write(chosen.folder or lessons_dir(), [START, *LESSONS], chosen.chromium):
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
