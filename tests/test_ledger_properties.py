"""The conservation law of the ledger, on drawn timelines that hypothesis makes up."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpututor.cards import card
from gpututor.intervals import merged, overlap_ns
from gpututor.ledger import IDLE, Account, Tally, charge, rows, waits, without
from gpututor.ledger.threads import ACCOUNT_OF, calls_in_calls, edge_by_edge
from gpututor.timeline import COMPUTING, ON_HOST, Activity, KernelWork, Span, covered_ns
from tests.draw import HOST, draw

CARDS = (None, card("V100-SXM2-16GB"), card("T4"))
amount = st.none() | st.floats(0, 1e12, allow_nan=False)
few = st.none() | st.integers(1, 1000)
formats = st.sampled_from([None, "fp32", "fp16", "bf16", "fp64", "fp8"])
works = st.builds(
    KernelWork,
    flop=amount,
    moved_bytes=amount,
    n_blocks=few,
    blocks_per_sm=st.none() | st.integers(1, 32),
    number_format=formats,
    useful_flop=amount,
)


def row(letters, length):
    return st.lists(st.sampled_from(letters), min_size=length, max_size=length).map("".join)


@st.composite
def drawings(draw_from):
    """Two threads (one with two layers), two streams, a copy engine, and a window that cuts spans."""
    n = draw_from(st.integers(2, 24))
    host, stream = row("..IPDLSCXUWab", n), row("...##MZOabc", n)
    drawn = {
        "host_main": (draw_from(host), draw_from(host)),
        "host_other": draw_from(host),
        "gpu": draw_from(stream),
        "gpu_side": draw_from(stream),
        "copy": draw_from(row("...><", n)),
        "link": draw_from(row("....T", n)),
    }
    start = draw_from(st.integers(0, n - 1))
    end = draw_from(st.integers(start + 1, n))
    work = draw_from(works)
    return draw(**drawn, window=(start, end), work=work, unit_ns=draw_from(st.sampled_from([1, 7, 1_000])))


@settings(max_examples=300, deadline=None)
@given(drawings(), st.sampled_from(CARDS))
def test_accounts_are_not_negative_and_add_up_to_the_window_exactly(timeline, on):
    ledger = charge(timeline, on)

    assert all(isinstance(ns, int) and ns >= 0 for ns in ledger.charged_ns.values())
    assert sum(ledger.charged_ns.values()) == timeline.duration_ns


@settings(max_examples=200, deadline=None)
@given(drawings(), st.lists(st.tuples(st.integers(0, 24), st.integers(1, 24)), min_size=1, max_size=3))
def test_windows_charged_together_are_those_charged_one_by_one(timeline, windows):
    tally = Tally(timeline)
    for start, length in windows:
        window = timeline.through(start * 500, (start + length) * 500)

        assert charge(window, CARDS[1], tally=tally) == charge(window, CARDS[1])


@settings(max_examples=100, deadline=None)
@given(drawings(), st.lists(st.sampled_from(list(Activity)), max_size=3))
def test_spans_are_found_by_activity_and_lane_as_by_looking_at_each(timeline, activities):
    assert list(timeline.on(*activities)) == [s for s in timeline.spans if s.activity in activities]
    assert [list(lane) for lane in timeline.by_lane] == [
        [s for s in timeline.spans if s.lane == k] for k in range(len(timeline.lanes))
    ]
    assert sorted(map(repr, timeline.on_gpus())) == sorted(repr(s) for s in timeline.spans if s.activity not in ON_HOST)


intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40))).map(merged)


@given(intervals, intervals)
def test_the_overlap_is_what_is_in_both_instant_by_instant(some, others):
    def instants(each):
        return {at for start, end in each for at in range(start, end)}

    assert overlap_ns(some, others) == len(instants(some) & instants(others))


@settings(max_examples=150, deadline=None)
@given(drawings())
def test_kernels_are_busy_and_waits_are_all_the_rest(timeline):
    ledger = charge(timeline)
    kernels_ns = covered_ns(timeline.on(*COMPUTING), timeline.window_ns)

    assert ledger.busy_ns >= kernels_ns  # copies within the GPU are busy too
    assert sum(end - start for start, end, _ in waits(timeline)) == ledger.idle_ns


@settings(max_examples=150, deadline=None)
@given(drawings(), st.sampled_from(CARDS))
def test_gauges_only_fall_on_the_way_down(timeline, on):
    levels = [r.end_share for r in rows(charge(timeline, on), empty=True)]

    assert levels == sorted(levels, reverse=True)
    assert levels[-1] >= 0


@settings(max_examples=150, deadline=None)
@given(drawings(), st.sampled_from(IDLE))
def test_removing_idle_time_never_lengthens_the_window(timeline, account):
    ledger = charge(timeline)
    if ledger.charged_ns[account] == ledger.window_ns:
        return
    better = without(ledger, account)

    assert max(1, ledger.busy_ns) <= better.window_ns <= ledger.window_ns


@settings(max_examples=100, deadline=None)
@given(drawings())
def test_two_halves_of_a_window_are_idle_as_long_as_the_whole(timeline):
    lo, hi = timeline.window_ns
    middle = (lo + hi) // 2
    if middle == lo:
        return

    def idle_ns(start, end):
        return charge(replace(timeline, window_ns=(start, end))).idle_ns

    assert idle_ns(lo, middle) + idle_ns(middle, hi) == idle_ns(lo, hi)


BY_LETTER = {letter: ACCOUNT_OF[HOST[letter]] for letter in "IPLSCXUW"}  # not D: gaps between calls are charged too


def account_of_column(gpu, copy, host):
    """What the rules say of one column of a drawing, letter by letter."""
    if gpu in "#ZO":
        return "busy"
    if gpu == "M":
        return Account.EXPOSED_COMMUNICATION
    if copy in "><":
        return Account.EXPOSED_COPY if copy == ">" else Account.BLOCKING_SYNC
    return Account.UNKNOWN_IDLE if host == "." else BY_LETTER[host]


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 40).flatmap(lambda n: st.tuples(row("..##MZO", n), row("...><", n), row("..IPLSCXUW", n))))
def test_the_sweep_agrees_with_reading_the_drawing_column_by_column(drawn):
    gpu, copy, host = drawn
    expected = Counter(account_of_column(*column) for column in zip(gpu, copy, host, strict=True))
    ledger = charge(draw(gpu=gpu, copy=copy, host=host, unit_ns=1))

    assert {a: ns for a, ns in ledger.charged_ns.items() if ns and a in IDLE} == {
        a: n for a, n in expected.items() if a != "busy"
    }
    assert ledger.busy_ns == expected["busy"]


@st.composite
def nested(draw_from, start=0, end=200, depth=0):
    """Spans of one thread, each wholly in the one that it begins in, by start and the longer first."""
    out, at = [], start
    for _ in range(draw_from(st.integers(0, 3))):
        begin = draw_from(st.integers(at, end))
        until = draw_from(st.integers(begin, end))
        if until > begin:
            activity = draw_from(st.sampled_from(sorted(ACCOUNT_OF, key=lambda each: each.value)))
            out.append(Span(0, activity, "call", begin, until, draw_from(st.sampled_from([None, 1, 2]))))
            if depth < 4:
                out += draw_from(nested(begin, until, depth + 1))
        at = until
    return sorted(out, key=lambda span: (span.start_ns, -span.end_ns)) if depth == 0 else out


@settings(max_examples=300, deadline=None)
@given(nested())
def test_nested_calls_are_charged_as_edge_by_edge(spans):
    to_host = {1}
    inside = calls_in_calls(spans, to_host)

    assert inside is not None
    assert turns(inside) == turns(edge_by_edge(spans, to_host))


def turns(thread):
    """Each instant at which the account changes, with the new one."""
    last, changes = None, {}
    for when, account in zip(thread.starts, thread.accounts, strict=True):
        if account is not last:
            changes[when] = last = account
    return changes


def test_spans_that_cross_are_no_calls_in_calls():
    first = Span(0, next(iter(ACCOUNT_OF)), "call", 0, 5)
    second = Span(0, next(iter(ACCOUNT_OF)), "call", 3, 8)

    assert calls_in_calls([first, second], set()) is None
