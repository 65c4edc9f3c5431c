"""What the furniture of a lesson says, and that a reader's text can't become markup."""

from dataclasses import replace

import marimo as mo
import pytest

import gpututor.page as gt
from gpututor.causes import Cause, Confidence, Evidence, Finding, Gain
from gpututor.expect import around, compare
from gpututor.ledger import Account, Ledger, charge, rows, waits
from gpututor.store import Try
from gpututor.timeline import Label, Origin
from tests.draw import US, draw

EVIL = '<script>alert("x")</script>'
SAFE = "&lt;script&gt;"
LABEL = Label(Origin.SIMULATED, "V100-SXM2-16GB", "p3.2xlarge", "one drawn step", (), 80)
STEP = draw(host="IIIIDaPPSS", gpu="......a...", label=LABEL)
LEDGER = charge(STEP)


def text(shown):
    return shown.text if isinstance(shown, mo.Html) else shown


def made(busy_ns, **gauges):
    """A ledger of a million nanoseconds with so much useful work, the rest launch overhead."""
    charged = {Account.USEFUL: busy_ns, Account.LAUNCH_OVERHEAD: 10**6 - busy_ns}
    return Ledger(10**6, charged, LABEL, busy_ns, 1, 1, **gauges)


def finding(**changed):
    plain = Finding(
        Cause.LAUNCH_BOUND,
        Account.LAUNCH_OVERHEAD,
        0.6,
        (Evidence("n", 467, "1", "467 kernels a step"),),
        "Use `nn.GRU`.",
        Gain(8e6, 2e6, "step"),
        Confidence("likely", "the gaps follow the launches"),
        10,
    )
    return text(gt.finding(replace(plain, **changed)))


# --- the label -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "word"),
    [(Origin.SIMULATED, "Simulated"), (Origin.MEASURED, "Measured"), (Origin.RECORDED, "Recorded")],
)
def test_every_source_line_says_where_the_numbers_come_from(origin, word):
    assert word in gt.source_line(replace(LABEL, origin=origin))


@pytest.mark.parametrize(
    "figure",
    [
        pytest.param(lambda: gt.gauges(LEDGER), id="gauges"),
        pytest.param(lambda: gt.figure("Ledger", LABEL, gt.waterfall(rows(LEDGER))), id="ledger"),
        pytest.param(lambda: gt.timeline_controls("Step", STEP, waits(STEP), "", ""), id="timeline"),
    ],
)
def test_a_figure_names_origin_card_and_machine(figure):
    shown = text(figure())

    assert all(word in shown for word in ("Simulated", "V100-SXM2-16GB", "p3.2xlarge"))


def test_a_card_that_is_not_known_is_said_to_be_so():
    assert "card not known" in gt.source_line(Label(Origin.RECORDED))


# --- percentages -----------------------------------------------------------------------------------------------


def test_a_busy_share_just_below_all_is_not_rounded_to_all():
    assert "&gt; 99.9<small>" in text(gt.gauges(made(999_900)))


def test_a_tiny_share_is_not_rounded_to_nothing():
    assert "&lt; 0.01" in text(gt.gauges(made(10)))


def test_a_tiny_share_still_has_a_visible_bar():
    assert "min-width:2px" in text(gt.gauges(made(10)))


def test_a_gauge_that_cannot_be_read_says_why_and_shows_no_number():
    shown = text(gt.gauges(made(500_000, reasons={"mfu": "the trace has no FLOP"})))

    assert "the trace has no FLOP" in shown
    assert "—" in shown


# --- the ledger ------------------------------------------------------------------------------------------------


def test_the_waterfall_has_a_line_for_every_row():
    assert gt.waterfall(rows(LEDGER)).count("<tr") == len(rows(LEDGER)) + 1  # and the hidden head


def test_a_lesson_can_say_what_happened_instead_of_what_an_account_means():
    assert "four characters" in gt.waterfall(rows(LEDGER), {"waiting_for_input": "the first four characters"})


def test_an_account_without_time_is_none_and_not_zero():
    assert "none here" in gt.waterfall(rows(LEDGER, empty=True))


def test_the_map_names_every_lesson():
    shown = gt.ledger_map(rows(LEDGER, empty=True), lambda lesson: False)

    assert all(lesson.title.replace("'", "&#x27;") in shown for lesson in gt.LESSONS)


def test_the_map_says_what_a_reader_sees_of_an_account():
    assert "The host is busy, the GPU in crumbs." in gt.ledger_map(rows(LEDGER, empty=True), lambda lesson: False)


def test_a_lesson_without_a_file_has_no_link(monkeypatch):
    monkeypatch.setattr("gpututor.page.front.is_ready", lambda lesson: lesson.number == 2)

    shown = gt.ledger_map(rows(LEDGER, empty=True), lambda lesson: False)

    assert shown.count("<a ") == 1
    assert "?file=02_the_25_percent_mystery.py" in shown


def test_a_finished_lesson_says_so_in_words(monkeypatch):
    monkeypatch.setattr("gpututor.page.front.is_ready", lambda lesson: True)

    assert ", done" in gt.ledger_map(rows(LEDGER, empty=True), lambda lesson: lesson.number == 1)


def test_three_workloads_stand_under_each_other():
    shown = gt.gauge_table([("one", made(1)), ("two", made(10)), ("three", made(100))])

    assert shown.count('<th scope="row">') == 3


# --- text from outside -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda: gt.guess_card(EVIL, ""), id="question"),
        pytest.param(lambda: gt.guess_locked("q", [Try(EVIL, "")], EVIL), id="guess"),
        pytest.param(lambda: gt.verdict("wrong", EVIL), id="verdict"),
        pytest.param(lambda: gt.progress_line(gt.Shown("failed", note=EVIL)), id="failure"),
        pytest.param(lambda: gt.source_line(replace(LABEL, what=EVIL)), id="label"),
        pytest.param(lambda: gt.figure(EVIL, LABEL), id="title"),
        pytest.param(lambda: gt.shown(lambda: int(EVIL)), id="error"),
        pytest.param(lambda: gt.gauge_table([(EVIL, LEDGER)]), id="workload"),
        pytest.param(lambda: gt.run_panel([], "", machine=EVIL), id="machine"),
        pytest.param(lambda: gt.money(LEDGER, 1.0, EVIL, ""), id="money"),
    ],
)
def test_text_from_outside_never_becomes_markup(shown):
    got = text(shown())

    assert "<script" not in got
    assert SAFE in got


# --- the guard -------------------------------------------------------------------------------------------------


def test_a_figure_that_fails_is_replaced_by_a_sentence():
    assert "could not be drawn (ZeroDivisionError" in text(gt.shown(lambda: 1 // 0))


def test_a_figure_that_works_is_left_alone():
    assert gt.shown(lambda: "fine") == "fine"


# --- guess and run ---------------------------------------------------------------------------------------------


def test_the_first_guess_stays_beside_the_second():
    shown = text(gt.guess_locked("q", [Try("first", ""), Try("second", "")], "third"))

    assert shown.index("first") < shown.index("second") < shown.index("third")


def test_the_answer_is_not_shown_before_it_is_known():
    assert "It was" not in text(gt.guess_locked("q", [Try("first", "")], None))


def test_a_kept_guess_is_chosen_again():
    assert gt.guess_control(["a", "b"], [Try("b", "")], lambda _: None).value == "b"


def test_a_kept_guess_that_is_no_option_any_more_is_dropped():
    assert gt.guess_control(["a", "b"], [Try("c", "")], lambda _: None).value is None


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (gt.Shown("ready"), "Not run yet."),
        (gt.Shown("queued"), "Waiting until another experiment is done."),
        (gt.Shown("running"), "Starting."),
        (gt.Shown("running", 95, 300, "", 2.9), "step 95 of 300 · about 3 s left"),
        (gt.Shown("done", 300, 300), "300 steps done."),
        (gt.Shown("done"), "Done on an earlier visit."),
        (gt.Shown("stopped", 7, 300), "Stopped after 7 of 300 steps. What ran so far is kept."),
        (gt.Shown("failed", note="Out of memory."), "Out of memory. The rest of the page still works"),
    ],
)
def test_the_progress_line_has_words_for_every_state(run, said):
    assert said in text(gt.progress_line(run))


def test_stop_is_there_only_while_something_runs():
    n_buttons = [
        len(gt.run_buttons(phase, lambda: None, lambda: None, label="Train"))
        for phase in ("ready", "running", "queued", "done")
    ]

    assert n_buttons == [1, 2, 2, 1]


# --- money, findings, expectations -----------------------------------------------------------------------------


def test_the_part_that_waits_is_priced():
    # Launch overhead is three quarters of this window.
    assert "<b>$3.00</b> of every <b>$4.00</b>" in text(gt.money(made(250_000), 4.0, "", ""))


def test_waiting_that_is_not_everything_does_not_cost_everything():
    assert "almost $4.00" in text(gt.money(made(10), 4.0, "", ""))


def test_without_a_price_there_is_no_sum():
    shown = text(gt.money(LEDGER, None, "", ""))

    assert "no price" in shown
    assert "$" not in shown


def test_a_finding_shows_cause_share_evidence_change_gain_and_how_sure():
    shown = finding()

    for part in (Cause.LAUNCH_BOUND.value, "60", "467 kernels a step", "nn.GRU", "at best", "Likely: the gaps"):
        assert part in shown


def test_a_finding_without_share_or_gain_leaves_those_lines_out():
    shown = finding(share=None, gain=None, account=None)

    assert "of the time" not in shown
    assert "Expect" not in shown


def test_an_expectation_shows_seen_range_and_verdict():
    shown = gt.expected_table([("step", compare(around(10_000.0, 0.25, "ns", "model"), 20_000.0))])

    assert all(part in shown for part in ("20.0", "12.5", "8.00", "outside the band", "model"))


# --- controls --------------------------------------------------------------------------------------------------


def test_the_window_slider_begins_at_the_view():
    assert tuple(gt.window_control(STEP, (2 * US, 6 * US)).value) == (2, 6)


def test_the_window_slider_reaches_over_the_whole_timeline():
    slider = gt.window_control(STEP, STEP.window_ns)

    assert (slider.start, slider.stop) == (0, 10)


def test_the_numbers_of_the_window_are_visible():
    assert "2 to 6 µs of 10 µs" in text(gt.timeline_figure(STEP, waits(STEP), (2, 6)))


def test_a_slider_moved_onto_itself_still_gives_a_window():
    assert "gt-strip" in text(gt.timeline_figure(STEP, waits(STEP), (4, 4)))


@pytest.mark.parametrize("state", ["unanswered", "wrong", "right"])
def test_the_picture_stands_before_the_verdict(state):
    shown = text(gt.verdict(state, "the sentence", "<svg></svg>"))

    assert shown.index("<svg>") < shown.index("the sentence")


def test_there_are_three_hints_at_most():
    shown = text(gt.exercise("1.1", "task", "", "", "", ["a", "b", "c", "d"]))

    assert shown.count("<summary>") == 3
