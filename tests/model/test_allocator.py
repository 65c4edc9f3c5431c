"""The allocator serves requests as PyTorch's does, counted by hand on drawn sequences."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpututor.errors import CardFull
from gpututor.model.allocator import Allocator
from gpututor.model.allocator_parts import rounded
from gpututor.model.allocator_report import fragmentation_share, snapshot, statistics, summary

KIB, MIB, GIB = 2**10, 2**20, 2**30


def drawn(allocator: Allocator) -> list[str]:
    """Each segment as text, one character per MiB (half a MiB in the small pool): # in use, . cached."""
    rows = []
    for pieces in allocator.segments():
        unit = MIB // 2 if pieces[0].lot.small else MIB
        rows.append("".join(("." if p.cached else "#") * round(p.size / unit) for p in pieces))
    return rows


def asked(allocator: Allocator, *mib: float) -> list:
    """A piece for each of these sizes in MiB."""
    return [allocator.allocate(int(m * MIB)) for m in mib]


@pytest.fixture
def card():
    return Allocator(GIB)


def test_a_small_request_is_cut_from_a_segment_of_2_mib(card):
    asked(card, 0.5)

    assert drawn(card) == ["#..."]


def test_small_requests_share_a_segment_until_it_is_full(card):
    asked(card, 0.5, 1, 0.5, 0.5)

    assert drawn(card) == ["####", "#..."]


def test_a_request_from_1_to_10_mib_is_cut_from_a_segment_of_20(card):
    asked(card, 3, 4)

    assert drawn(card) == ["#######............."]


def test_a_larger_request_gets_a_segment_of_its_own_in_whole_2_mib(card):
    asked(card, 10, 11)

    assert drawn(card) == ["##########", "############"]


def test_a_rest_of_up_to_1_mib_is_not_split_off_a_large_piece(card):
    asked(card, 9, 10)

    assert drawn(card) == ["####################"]
    assert card.all.size == 20 * MIB  # 9, and 11 for the request of 10 with its rest


def test_the_smallest_cached_piece_that_fits_is_taken(card):
    _, first, _, second, _ = asked(card, 2, 6, 2, 4, 6)
    card.free(first)
    card.free(second)
    assert drawn(card) == ["##......##....######"]

    asked(card, 2)

    assert drawn(card) == ["##......####..######"]


def test_of_equal_pieces_the_one_at_the_lowest_address_is_taken(card):
    _, first, _, second, _ = asked(card, 2, 4, 2, 4, 8)
    card.free(second)
    card.free(first)

    asked(card, 4)

    assert drawn(card) == ["########....########"]


def test_freed_neighbours_grow_together(card):
    a, b, c, _ = asked(card, 2, 3, 4, 11)
    card.free(a)
    card.free(c)
    card.free(b)

    assert [p.size // MIB for p in next(card.segments())] == [9, 11]


def test_what_is_freed_is_used_again_without_the_driver(card):
    (a,) = asked(card, 12)
    card.free(a)
    asked(card, 12)

    assert card.n_mallocs == 1


def test_memory_freed_on_one_stream_serves_no_other(card):
    (a,) = asked(card, 12)
    card.free(a)
    card.use_stream(7)
    asked(card, 12)

    assert drawn(card) == ["............", "############"]


def test_memory_that_was_set_aside_outlives_an_emptied_cache_and_comes_back(card):
    card.use_stream(-1)
    (piece,) = asked(card, 12)
    card.free(piece)
    card.use_stream(0)
    aside = card.set_aside(-1)
    card.release_cached()

    assert card.reserved_bytes == 12 * MIB
    card.put_back(-1, aside)
    card.release_cached()
    assert card.reserved_bytes == 0


def test_sizes_are_rounded_to_512_bytes_and_the_asked_ones_counted_beside(card):
    card.allocate(1)
    card.allocate(513)

    assert card.all.size == 512 + 1024
    assert card.all.asked == 514


def test_an_emptied_cache_keeps_segments_that_are_partly_in_use(card):
    whole, part, _ = asked(card, 12, 2, 3)
    card.free(whole)
    card.free(part)
    card.release_cached()

    assert drawn(card) == ["..###..............."]


def test_a_full_card_gives_up_its_cache_before_it_refuses():
    card = Allocator(30 * MIB)
    (a,) = asked(card, 20)
    card.free(a)
    asked(card, 30)

    assert drawn(card) == ["#" * 30]
    assert (card.n_retries, card.n_full, card.n_frees) == (1, 0, 1)


def test_a_cache_in_pieces_does_not_serve_a_large_request():
    card = Allocator(40 * MIB)
    pieces = asked(card, *[5] * 8)
    for piece in pieces[::2]:
        card.free(piece)

    with pytest.raises(CardFull, match="are free; take a smaller batch") as caught:
        asked(card, 12)
    assert caught.value.cached_bytes - caught.value.used_bytes == 20 * MIB
    assert fragmentation_share(card.all) == 0.5


def test_what_lies_outside_the_allocator_is_not_there_to_give():
    card = Allocator(30 * MIB, outside_bytes=20 * MIB)

    assert card.free_bytes == 10 * MIB
    with pytest.raises(CardFull):
        asked(card, 12)


def test_a_process_may_be_allowed_less_than_the_card_has():
    card = Allocator(GIB)
    card.allowed_bytes = 20 * MIB
    asked(card, 5)

    with pytest.raises(CardFull):
        asked(card, 16)


class Clocks:
    """A host and a stream with the times that a test sets."""

    now, ends = 0, 0

    def malloc(self, n_bytes):
        pass

    def free(self, n_segments):
        pass

    def now_ns(self):
        return self.now

    def stream_ends_ns(self, stream):
        return self.ends


def test_memory_that_another_stream_works_on_waits_for_it():
    clocks = Clocks()
    card = Allocator(GIB, 0, clocks)
    (a,) = asked(card, 12)
    card.record_stream(a, 3)
    clocks.ends = 100
    card.free(a)

    assert (card.all.size, card.all.active) == (0, 12 * MIB)
    asked(card, 12)
    assert card.n_mallocs == 2
    clocks.now = 100
    asked(card, 12)
    assert card.n_mallocs == 2
    assert (card.all.size, card.all.active) == (24 * MIB, 24 * MIB)


def test_its_own_stream_is_no_other(card):
    (a,) = asked(card, 12)
    card.record_stream(a, 0)
    card.free(a)

    assert card.all.active == 0


def test_peaks_are_those_of_the_moment_not_sums_of_peaks(card):
    (large,) = asked(card, 12)
    card.free(large)
    asked(card, 0.5)

    assert card.all.size_peak == 12 * MIB
    assert card.small.size_peak == MIB // 2
    assert card.large.size_peak == 12 * MIB


def test_rests_are_counted_where_a_segment_is_in_use_elsewhere(card):
    a, b = asked(card, 5, 5)
    assert (card.all.rest_n, card.all.rest) == (1, 10 * MIB)
    card.free(a)
    assert (card.all.rest_n, card.all.rest) == (2, 15 * MIB)
    card.free(b)

    assert (card.all.rest_n, card.all.rest) == (0, 0)
    assert (card.all.rest_n_peak, card.all.rest_peak) == (2, 15 * MIB)


def test_statistics_have_cudas_names_and_totals(card):
    a, _ = asked(card, 5, 0.5)
    card.free(a)
    found = statistics(card)

    assert found["allocated_bytes.all.current"] == MIB // 2
    assert found["allocated_bytes.large_pool.freed"] == 5 * MIB
    assert found["allocation.all.allocated"] == 2
    assert found["segment.all.current"] == 2
    assert found["reserved_bytes.all.peak"] == 22 * MIB
    assert found["num_device_alloc"] == 2
    assert list(found) == sorted(found)


def test_totals_begin_anew_while_what_is_in_use_stays(card):
    a, _ = asked(card, 5, 6)
    card.all  # noqa: B018  # brings the counts up to date
    card.large.reset_totals()
    card.free(a)
    size = card.large.by_name()["allocated_bytes"]

    assert size == (6 * MIB, 11 * MIB, 0, 5 * MIB)


def test_the_snapshot_shows_each_piece_and_adds_up(card):
    a, _ = asked(card, 5, 6)
    card.free(a)
    (segment,) = snapshot(card, 0)

    assert [b["state"] for b in segment["blocks"]] == ["inactive", "active_allocated", "inactive"]
    assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"] == 20 * MIB


def test_the_summary_has_a_row_for_each_figure(card):
    asked(card, 5)

    assert "| Allocated memory      |   5120 KiB |   5120 KiB |   5120 KiB |      0 B   |" in summary(card, 0)


def test_no_fragmentation_is_known_before_anything_is_reserved(card):
    assert fragmentation_share(card.all) is None


REQUESTS = st.lists(
    st.tuples(st.integers(1, 30 * MIB) | st.integers(1, 4 * KIB), st.integers(0, 3), st.sampled_from([0, 0, 0, 5])),
    max_size=60,
)


@settings(deadline=None)  # the first count of a log loads numpy
@given(REQUESTS)
def test_pieces_fill_their_segments_without_gap_or_overlap(requests):
    card = Allocator(GIB)
    live = []
    for size, n_freed, stream in requests:
        card.use_stream(stream)
        live.append(card.allocate(size))
        for _ in range(min(n_freed, len(live))):
            card.free(live.pop(size % len(live)))
        in_use = reserved = 0
        for pieces in card.segments():
            reserved += sum(p.size for p in pieces)
            in_use += sum(p.size for p in pieces if not p.cached)
            assert all(a.address + a.size == b.address for a, b in pairwise(pieces))
            assert not any(a.cached and b.cached for a, b in pairwise(pieces))
        assert reserved == card.reserved_bytes
        assert in_use == card.all.size == card.small.size + card.large.size
        assert card.all.n == len(live)
        assert all(piece.size >= rounded(piece.asked) for piece in live)


@settings(deadline=None)  # the first count of a log loads numpy
@given(REQUESTS)
def test_a_log_counted_at_the_end_says_what_counting_at_each_step_says(requests):
    def peaks(look: bool):
        card, live = Allocator(GIB), []
        for size, n_freed, stream in requests:
            card.use_stream(stream)
            live.append(card.allocate(size))
            for _ in range(min(n_freed, len(live))):
                card.free(live.pop(size % len(live)))
                if look:
                    statistics(card)
        return statistics(card)

    assert peaks(look=True) == peaks(look=False)


@settings(deadline=None)  # the first count of a log loads numpy
@given(REQUESTS)
def test_after_everything_is_freed_an_emptied_cache_holds_nothing(requests):
    card = Allocator(GIB)
    live = []
    for size, _, stream in requests:
        card.use_stream(stream)
        live.append(card.allocate(size))
    for piece in live:
        card.free(piece)
    card.release_cached()

    assert card.reserved_bytes == 0
    assert all(value == 0 for name, value in statistics(card).items() if name.endswith(".current"))
