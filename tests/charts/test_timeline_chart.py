"""What the timeline chart sends to the browser."""

import csv
import io
from itertools import pairwise

import pytest

from gpututor.charts import strip_svg, timeline_chart, views
from gpututor.charts.lanes import bands, take_turns
from gpututor.charts.strip import slices
from gpututor.charts.timeline import MOST_MARKS, short
from gpututor.ledger import Account, waits
from gpututor.timeline import Activity, Lane, LaneKind, Span
from tests.draw import US, draw

# Two launches; kernel a runs 3 us, kernel b 1 us, in a window of 10 us.
STEP = draw(host="IIaaPbbSSS", gpu="...aaa.b..")


def rows(layer):
    """A layer's table as dicts of text."""
    return list(csv.DictReader(io.StringIO(layer.data.values), delimiter="\t"))


def bars(chart):
    return rows(chart.layer[0])


def marks(chart):
    return [layer.mark.type for layer in chart.layer]


def long_step(n=4000):
    """`n` kernels of one launch each, two characters apart."""
    return draw(host="L." * n, gpu=".#" * n)


def test_every_span_and_every_wait_is_a_bar():
    drawn = {(bar["n"], bar["w"]) for bar in bars(timeline_chart(STEP, waits(STEP)))}

    assert {("a", "launch"), ("a", "kernel"), ("I", "input"), ("S", "sync")} <= drawn
    assert any(name == "GPU idle" for name, _ in drawn)


def test_times_count_in_microseconds_from_the_begin_of_the_timeline():
    shifted = STEP.looked_at(2 * US, 10 * US)

    kernel = next(b for b in bars(timeline_chart(shifted, waits(shifted))) if (b["n"], b["w"]) == ("a", "kernel"))

    assert (float(kernel["s"]), float(kernel["e"])) == (1.0, 4.0)


def test_waiting_lies_lower_than_work():
    chart = bars(timeline_chart(STEP, waits(STEP)))
    work = {float(b["y1"]) for b in chart if b["w"] == "kernel"}
    idle = {float(b["y1"]) for b in chart if b["n"] == "GPU idle"}

    assert max(idle) < min(work)


def test_launch_lines_lead_to_the_kernels_when_they_are_few():
    assert marks(timeline_chart(STEP, waits(STEP))).count("rule") == 1


def test_no_launch_lines_when_they_are_too_many_to_follow():
    spans = [Span(0, Activity.LAUNCH, "l", k * US, k * US + US, k) for k in range(0, 200, 2)]
    spans += [Span(1, Activity.KERNEL, "k", k * US + US, k * US + 2 * US, k) for k in range(0, 200, 2)]
    timeline = type(STEP)(STEP.lanes, tuple(spans), (0, 300 * US), STEP.label)

    assert "rule" not in marks(timeline_chart(timeline, waits(timeline)))


def test_a_long_step_is_drawn_with_few_marks():
    timeline = long_step()

    assert len(bars(timeline_chart(timeline, waits(timeline)))) <= MOST_MARKS


def test_merging_keeps_the_time_of_kernels_and_waits():
    timeline = long_step(500)
    (gpu,) = [b for b in bands(timeline, waits(timeline), timeline.window_ns, 5 * US, 400) if b.title == "GPU"]

    busy_ns = sum(s.duration_ns for s in gpu.segments if s.activity is Activity.KERNEL)
    idle_ns = sum(s.duration_ns for s in gpu.segments if s.activity is None)

    assert len(gpu.segments) < 500
    assert (busy_ns, idle_ns) == (500 * US, 500 * US)


def test_patterned_accounts_get_a_layer_of_their_own():
    pause = draw(host="XXXXLL", gpu=".....#")

    fills = [layer.mark.fill for layer in timeline_chart(pause, waits(pause)).layer if layer.mark.type == "rect"]

    assert len(fills) == 2


def test_only_one_window_to_either_side_is_sent():
    timeline = long_step(500)

    sent = bars(timeline_chart(timeline, waits(timeline), (400 * US, 420 * US)))

    assert min(float(b["s"]) for b in sent) >= 380
    assert max(float(b["e"]) for b in sent) <= 440


def test_names_with_tabs_and_quotes_stay_in_their_cell():
    odd = type(STEP)(
        (Lane(LaneKind.HOST, "main"),), (Span(0, Activity.PYTHON, 'a\t"b"\nc', 0, US),), (0, US), STEP.label
    )

    assert bars(timeline_chart(odd, ()))[0]["n"] == "a 'b' c"


def test_a_timeline_without_any_span_still_gives_a_chart():
    empty = type(STEP)((Lane(LaneKind.HOST, "main"),), (), (0, US), STEP.label)

    assert timeline_chart(empty, ()).to_dict()["layer"]


def test_threads_that_take_turns_share_a_band():
    turns = draw(host="DD..DD", host_autograd="..DD..", gpu=".#.#.#")

    assert [b.title for b in bands(turns, waits(turns), turns.window_ns, 1, 100)] == ["Host", "GPU"]


def test_threads_at_the_same_time_have_a_band_each():
    together = draw(host="DDDD", host_loader=".III", gpu="...#")

    titles = [b.title for b in bands(together, waits(together), together.window_ns, 1, 100)]

    assert titles == ["Host, host", "Host, host_loader", "GPU"]


def test_bands_do_not_overlap():
    stack = bands(STEP, waits(STEP), STEP.window_ns, 1, 100)

    assert all(upper.bottom > lower.top for upper, lower in pairwise(stack))


def test_lanes_that_only_touch_take_turns():
    one, other = Span(0, Activity.PYTHON, "a", 0, 5), Span(1, Activity.PYTHON, "b", 5, 9)

    assert take_turns([[one], [other]], (0, 9))


def test_every_slice_of_the_strip_is_full():
    totals = [sum(each.values()) for each in slices(STEP, waits(STEP), 7)]

    assert totals == pytest.approx([1.0] * 7)


def test_the_strip_shows_as_much_kernel_time_as_there_is():
    kernels = sum(each.get(Account.BUSY_UNSPLIT, 0.0) for each in slices(STEP, waits(STEP), 5))

    assert kernels / 5 == pytest.approx(0.4)  # 4 of 10 characters


def test_the_strip_says_what_it_is():
    assert 'role="img" aria-label="The whole step' in strip_svg(STEP, waits(STEP), (0, 5 * US))


def test_the_longest_wait_of_each_account_is_offered_as_a_view():
    offered = views(STEP, waits(STEP))

    assert {"waiting for input", "a sync", "the whole step"} <= set(offered)


def test_views_lie_inside_the_window():
    lo, hi = STEP.window_ns

    assert all(lo <= a < b <= hi for a, b in views(STEP, waits(STEP)).values())


@pytest.mark.parametrize(("name", "said"), [("aten.addmm.default", "addmm"), ("my.module", "my.module")])
def test_only_torchs_own_prefix_is_cut(name, said):
    assert short(name) == said
