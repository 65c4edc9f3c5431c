"""The furniture in a real browser: it draws, it follows its controls, it fits a phone, and it calls nobody."""

import re
import shutil
import textwrap
from pathlib import Path

import pytest

import gpututor.page as gt
from tests.browser import browser, served, visit

pytestmark = pytest.mark.browser

ROOT = Path(gt.__file__).parents[2]
NOTEBOOK = textwrap.dedent("""
    # /// script
    # [tool.marimo.display]
    # theme = "system"
    # ///
    import marimo

    app = marimo.App(width="medium", css_file="look.css")

    with app.setup:
        import marimo as mo

        import gpututor.page as gt
        from gpututor.ledger import charge, rows, waits
        from gpututor.timeline import Label, Origin
        from tests.draw import draw

        step = draw(
            host="IIII" + "DLP" * 40 + "SSXX",
            gpu="." * 6 + "..#" * 40 + "..",
            label=Label(Origin.SIMULATED, "V100-SXM2-16GB", "p3.2xlarge", "drawn", (), 80),
        )


    @app.cell
    def head():
        gt.header(2, "A drawn step.", hero=gt.unknown_bar(0.25, "busy"))


    @app.cell
    def ledger():
        gt.figure("Ledger", step.label, gt.waterfall(rows(charge(step))), wide=True)


    @app.cell
    def view_cell():
        offered = gt.views(step, waits(step))
        view = gt.view_control(offered)
        return offered, view


    @app.cell
    def window_cell(offered, view):
        window = gt.window_control(step, offered[view.value])
        return (window,)


    @app.cell
    def controls(view, window):
        gt.timeline_controls("Step", step, waits(step), view, window)


    @app.cell
    def timeline(window):
        gt.timeline_figure(step, waits(step), window.value)


    @app.cell
    def curve():
        gt.figure("Try it", "a formula", gt.curve({"busy": [(1, 1.0), (9, 0.1)]}, x_title="batch"))


    if __name__ == "__main__":
        app.run()
""")


@pytest.fixture(scope="module")
def lesson(tmp_path_factory, chromium):
    """A served notebook and a browser."""
    folder = tmp_path_factory.mktemp("lesson")
    (folder / "drawn.py").write_text(NOTEBOOK, encoding="utf-8")
    shutil.copy(ROOT / "lessons" / "look.css", folder / "look.css")
    with served(folder / "drawn.py", folder, {"PYTHONPATH": str(ROOT)}) as server, browser(chromium) as running:
        yield server, running


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_a_page_draws_quietly_and_fits(lesson, width, theme):
    server, running = lesson

    page = visit(running, server.address(), width=width, theme=theme)
    page.wait_for("ledger", "MFU")
    page.wait_for_chart("timeline")
    page.wait_for_chart("curve")

    assert page.errors == []
    assert page.elsewhere == []
    assert page.overflow_px() == 0
    assert "Traceback" not in server.log


def test_a_view_moves_the_window_of_the_chart(lesson):
    server, running = lesson
    page = visit(running, server.address())
    page.wait_for_chart("timeline")

    page.cell("controls").get_by_role("radio", name="the whole step").click()

    page.wait_for("timeline", re.compile(r"0 to 128 µs of 128 µs"))


def test_text_on_a_chart_follows_the_theme(lesson):
    server, running = lesson
    colours = set()
    for theme in ("light", "dark"):
        page = visit(running, server.address(), theme=theme)
        page.wait_for_chart("curve")
        label = page.cell("curve").locator("svg .role-axis-label text").first
        colours.add(label.evaluate("text => getComputedStyle(text).fill"))

    assert len(colours) == 2
