"""Pieces of a lane: nothing overlaps, and drawing fewer of them keeps every account's time."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.charts.segments import Segment, clipped, fitting, flattened, thinned, with_idle
from gpututor.ledger import Account, Piece
from gpututor.timeline import Activity, Span, covered_ns
from tests.draw import US, draw

LAUNCH, BUSY = Account.LAUNCH_OVERHEAD, Account.BUSY_UNSPLIT


def comb(n, busy_ns=1, idle_ns=3):
    """`n` kernels, each followed by a wait three times as long."""
    out = []
    for k in range(n):
        at = k * (busy_ns + idle_ns)
        out.append(Segment(at, at + busy_ns, BUSY, "k", Activity.KERNEL))
        out.append(Segment(at + busy_ns, at + busy_ns + idle_ns, LAUNCH, "GPU idle"))
    return out


def time_by_account(segments):
    total = Counter()
    for s in segments:
        total[s.account, s.activity is None] += s.duration_ns
    return total


spans = st.lists(
    st.builds(
        lambda start, long, activity: Span(0, activity, "s", start, start + long),
        st.integers(0, 60),
        st.integers(0, 25),
        st.sampled_from([Activity.KERNEL, Activity.COLLECTIVE]),
    ),
    max_size=12,
)
lanes = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 40), st.sampled_from([BUSY, LAUNCH]), st.booleans()), max_size=60
)


def laid_out(parts):
    """Segments one after the other, from gaps, lengths, accounts and whether they are waits."""
    out, at = [], 0
    for gap, long, account, is_wait in parts:
        out.append(Segment(at + gap, at + gap + long, account, "s", None if is_wait else Activity.KERNEL))
        at += gap + long
    return out


def test_the_span_that_began_last_is_seen():
    outer, inner = Span(0, Activity.INPUT, "outer", 0, 10), Span(0, Activity.PYTHON, "inner", 4, 6)

    seen = [(s.name, s.start_ns, s.end_ns) for s in flattened([outer, inner])]

    assert seen == [("outer", 0, 4), ("inner", 4, 6), ("outer", 6, 10)]


@given(spans)
def test_pieces_never_overlap(drawn):
    pieces = flattened(drawn)

    assert all(a.end_ns <= b.start_ns for a, b in pairwise(pieces))


@given(spans)
def test_pieces_last_as_long_as_the_union_of_the_spans(drawn):
    pieces = flattened(drawn)

    assert sum(p.duration_ns for p in pieces) == covered_ns(drawn, (0, 100))


@given(lanes, st.floats(0.1, 50))
def test_thinning_keeps_each_accounts_time_to_the_nanosecond(parts, pixel_ns):
    segments = laid_out(parts)

    assert time_by_account(thinned(segments, pixel_ns)) == time_by_account(segments)


@given(lanes, st.floats(0.1, 50))
def test_thinned_segments_stay_in_order_and_apart(parts, pixel_ns):
    thin = thinned(laid_out(parts), pixel_ns)

    assert all(a.end_ns <= b.start_ns for a, b in pairwise(thin))


@given(lanes, st.floats(0.1, 50))
def test_thinning_counts_every_segment_once(parts, pixel_ns):
    segments = laid_out(parts)

    assert sum(s.n for s in thinned(segments, pixel_ns)) == len(segments)


def test_a_fine_comb_becomes_a_coarser_one():
    thin = thinned(comb(100), pixel_ns=4)

    # Six pixels hold 24 ns: six teeth of 1 ns and six gaps of 3 ns, each drawn as one.
    assert [(s.duration_ns, s.n) for s in thin[:2]] == [(6, 6), (18, 6)]


def test_what_is_wide_enough_to_be_seen_is_left_alone():
    segments = comb(10)

    assert thinned(segments, pixel_ns=0.4) == segments


def test_as_many_marks_as_allowed_are_kept_at_most():
    thin = fitting([comb(3000), comb(2000)], pixel_ns=0.1, most=100)

    assert sum(map(len, thin)) <= 100


def test_a_wait_under_drawn_work_is_not_drawn_twice():
    work = flattened(draw(gpu="..MM..").spans)
    idle = [Piece(0, 6 * US, Account.EXPOSED_COMMUNICATION)]

    both = with_idle(work, idle, (0, 6 * US))

    assert [(s.start_ns // US, s.end_ns // US, s.activity) for s in both] == [
        (0, 2, None),
        (2, 4, Activity.COLLECTIVE),
        (4, 6, None),
    ]


def test_clipping_cuts_at_both_ends():
    (cut,) = clipped([Segment(0, 10, BUSY, "k")], (3, 7))

    assert (cut.start_ns, cut.end_ns) == (3, 7)


@pytest.mark.parametrize("window", [(0, 5), (10, 12)])
def test_touching_the_window_is_not_inside_it(window):
    assert clipped([Segment(5, 10, BUSY, "k")], window) == []
