"""The page of `gpututor history plot --html`: what it says of a planted regression, and that it asks nobody for it."""

from __future__ import annotations

import re
from html import unescape

import pytest

from gpututor.charts.runs import Bar, Repeats, Room, run_bars, ticks, unit_of
from gpututor.cli.history_page import SHOWN, chart_page, settings
from gpututor.history.changes import groups
from gpututor.ledger import Account
from tests.browser import browser, visit
from tests.history.runs import MS, row, run

SLOWER_SINCE = 31
MEASURED = {"origin": "measured", "card": "H200-SXM", "machine": "some processor"}


def plain(markup: str) -> str:
    """The text of a page, without markup."""
    text = unescape(re.sub(r"<style.*?</style>|<[^>]*>", " ", markup, flags=re.DOTALL))
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def three_configurations() -> list[list]:
    """40 runs: a loader that got slower in run 31, one with a larger batch, and a simulated job."""
    runs = []
    for number in range(1, 41):
        at = f"2026-01-{1 + number // 2:02}T00:00:00+00:00"
        if number % 2:
            late = number >= SLOWER_SINCE
            runs.append(run(11.8 if late else 10, 3.8 if late else 2, number=number, at=at, **MEASURED))
        elif number % 4:
            other = {"arguments": ["--batch", "64"]}
            runs.append(run(18, number=number, at=at, configuration=other, **MEASURED))
        else:
            runs.append(run(7, name="seq2seq", kind="job", number=number, at=at))
    return list(groups(runs).values())


@pytest.fixture(scope="module")
def page() -> str:
    return chart_page(three_configurations())


def heights(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"<span style=\"height:([\d.]+)%\"><i", text)]


# --- what it says --------------------------------------------------------------------------------------------------


def test_the_regression_is_named_at_the_top_with_run_size_and_account(page):
    lead = re.search(r'class="gt-lead">(.*?)</p>', page)[1]

    assert plain(lead) == (
        "train.py on H200-SXM (arguments: --batch 32): since run 31: +18 %, on the account waiting for input."
    )


def test_a_flag_stands_where_the_change_began(page):
    place = list(range(1, 41, 2)).index(SLOWER_SINCE)

    assert re.search(rf'gt-slower gt-late" style="left:{100 * place / 20:.3f}%;--row:0"><span>since run 31', page)


def test_without_a_change_the_page_says_that_no_step_became_longer():
    assert "No step became longer." in plain(chart_page([row("10 10 10 10")]))


def test_a_shorter_step_is_flagged_and_no_regression():
    text = chart_page([row("10 10 10 8 8")])

    assert "No step became longer." in plain(text)
    assert 'class="gt-turn gt-faster' in text


def test_only_the_account_that_moved_is_in_the_table_below(page):
    table = re.search(r"<table class=\"gt-runs gt-moved\">.*?</table>", page, re.DOTALL)[0]

    assert plain(table).endswith("Waiting for input 2.00 ms 3.80 ms +1.80 ms")


def test_each_chart_says_measured_or_simulated_on_which_card_and_machine(page):
    text = plain(page)

    assert text.count("Measured H200-SXM · some processor · gpututor run") == 2
    assert "Simulated V100-SXM2-16GB · p3.2xlarge · gpututor job" in text


def test_two_configurations_of_one_script_are_told_apart_by_what_differs():
    small, large, _ = (group[-1] for group in three_configurations())

    assert settings(small, [large]) == "arguments: --batch 32"
    assert settings(small, [small]) == ""


def test_the_axis_has_its_unit(page):
    assert page.count("a step (ms), by number of the run") == 3


def test_every_run_is_in_the_table(page):
    assert sorted(int(n) for n in re.findall(r'<th scope="row">(\d+)</th>', page)) == list(range(1, 41))


def test_one_run_alone_says_that_nobody_can_tell_yet():
    assert "With 1 of the 4 runs that it takes, nobody can tell yet what is usual." in plain(chart_page([row("10")]))


def test_a_long_history_draws_its_last_runs_and_says_so():
    runs = [run(10, number=k, at="2026-01-01T00:00:00+00:00") for k in range(1, SHOWN + 31)]
    text = chart_page([runs])

    assert f"The last {SHOWN} of {SHOWN + 30} runs are drawn." in plain(text)
    assert text.count('class="gt-run') - text.count('class="gt-runs') == SHOWN


def test_single_runs_outside_the_room_stand_behind_one_line():
    text = plain(chart_page([row("10 10 10 10 12 10 10 13 10")]))

    assert "2 single runs lay outside the usual room, which may be chance In run 8: +30 % a step" in text.replace(
        " in run", " In run"
    )


def test_a_run_without_accounts_is_a_pale_bar_and_said_to_be():
    text = chart_page([[run(10, number=1, at="2026-01-01T00:00:00+00:00", accounts_ns={})]])

    assert "A pale bar is a run that nothing split into accounts." in plain(text)


def test_what_a_script_is_called_is_text_and_no_markup():
    text = chart_page([row("10 10 10 12 12", name="<script>alert(1)</script>", card='"><img src=x>')])

    assert "<script" not in text
    assert "<img" not in text


# --- the bars ------------------------------------------------------------------------------------------------------


def test_a_bar_is_as_high_as_its_step_from_zero():
    bars = tuple(Bar(k, ms * MS, {Account.USEFUL: ms * MS}, "") for k, ms in enumerate((5, 10)))

    low, high = heights(run_bars(Repeats(bars)))
    assert high == pytest.approx(2 * low, abs=0.02)


def test_the_accounts_of_a_bar_fill_it_from_the_floor_upwards():
    bar = Bar(1, 10 * MS, {Account.WAITING_FOR_INPUT: 4 * MS, Account.USEFUL: 6 * MS}, "")

    assert Repeats((bar,)).accounts == (Account.USEFUL, Account.WAITING_FOR_INPUT)
    assert re.findall(r'<i style="height:([\d.]+)%', run_bars(Repeats((bar,)))) == ["60.00", "40.00"]


def test_a_room_higher_than_every_bar_still_fits():
    assert Repeats((Bar(1, 10.0, {}, ""),), (Room(0, 1, 5.0, 30.0),)).top_ns > 30


@pytest.mark.parametrize("top", [0.7, 1.0, 9.99, 10.0, 37.0, 4999.0])
def test_ticks_are_three_to_eleven_round_numbers_below_the_top(top):
    found = ticks(top)

    assert 3 <= len(found) <= 11
    assert found[0] == 0
    assert found[-1] <= top


def test_times_below_a_nanosecond_have_a_unit_too():
    assert unit_of(0.0) == (1.0, "ns")


# --- in a browser --------------------------------------------------------------------------------------------------


def test_it_has_no_script_and_no_address(page):
    assert "<script" not in page
    assert not re.search(r"https?:|//[a-z]|@import|<link|<img|<iframe", page)


@pytest.mark.parametrize(("width", "theme"), [(1200, "light"), (390, "dark")])
def test_a_browser_asks_nobody_for_anything_and_nothing_sticks_out(page, chromium, tmp_path, width, theme):
    file = tmp_path / "runs.html"
    file.write_text(page, encoding="utf-8")
    asked: list[str] = []
    with browser(chromium) as running:
        seen = visit(running, file.as_uri(), width=width, theme=theme)
        seen.page.on("request", lambda request: asked.append(request.url))
        seen.page.reload()
        seen.page.locator(".gt-run").nth(10).hover()

        assert seen.page.locator(".gt-tip").nth(10).is_visible()
        assert seen.overflow_px() == 0
        assert (asked, seen.elsewhere, seen.errors) == ([file.as_uri()], [], [])
        seen.close()
