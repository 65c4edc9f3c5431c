"""Collectives: the formula by hand, what ranks wait for each other, and published tables of all-reduce."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from math import sqrt

import pytest

from gpututor.cards import card, machine
from gpututor.errors import KernelSpecError, LinkNotKnown, RanksDisagree
from gpututor.links import Wiring, link, wiring
from gpututor.model import tape_file
from gpututor.model.cards_player import CardsPlayer, CardsPricer
from gpututor.model.cards_queue import CardsQueue
from gpututor.model.collectives import Team, exchange_ns, peer_copy_ns, ring_s, sent_share, tree_s
from gpututor.model.exchange import CardsExchange, PeerCopy, RanksExchange, Threads, WaitExchange
from gpututor.model.ranks import RankTapes
from gpututor.model.tape import BeginStep, EndRun, HostWork, Sync, Tape
from gpututor.timeline import Activity, KernelWork, LaneKind

MS = 1_000_000
PLAIN = replace(link("nvlink3"), bus_bytes_per_s=1e9, half_bytes=0.0, start_us=0.0, hop_us=0.0, shared_bytes_per_s=None)


def team(n, n_machines=1, cards=PLAIN, network=PLAIN):
    return Team(n, n_machines, Wiring(cards, network))


# --- the formula ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "n", "ms"),
    [
        ("all_reduce", 4, 15),  # 2 * 3/4 * 10 MB at 1 GB/s
        ("all_reduce", 2, 10),
        ("all_gather", 4, 7.5),
        ("reduce_scatter", 4, 7.5),
        ("broadcast", 4, 10),
    ],
)
def test_a_ring_sends_its_share_of_the_bytes_at_the_bus_rate(kind, n, ms):
    assert exchange_ns(kind, 10_000_000, team(n)) == ms * MS


def test_latency_is_start_and_hops():
    slow = replace(PLAIN, start_us=20.0, hop_us=2.0)

    assert exchange_ns("all_reduce", 0, team(8, cards=slow)) == (20 + 14 * 2) * 1000
    assert exchange_ns("all_gather", 0, team(8, cards=slow)) == (20 + 7 * 2) * 1000


def test_a_small_message_takes_longer_by_the_root():
    half = replace(PLAIN, half_bytes=4e6)

    assert exchange_ns("all_reduce", 1_000_000, team(2, cards=half)) == pytest.approx(MS * (1 + sqrt(4)), abs=1)


def test_one_card_alone_exchanges_nothing():
    assert exchange_ns("all_reduce", 10_000_000, team(1)) == 1


def test_between_machines_a_tree_wins_where_little_is_sent_and_a_ring_where_much_is():
    far = replace(PLAIN, start_us=10.0, hop_us=20.0)
    small, large = 1_000, 1_000_000_000

    def total(way, n_bytes):
        latency_us, moving_s = way("all_reduce", n_bytes, 16, far)
        return latency_us * 1e-6 + moving_s

    assert total(tree_s, small) < total(ring_s, small)
    assert total(ring_s, large) < total(tree_s, large)
    assert exchange_ns("all_reduce", small, team(16, 16, network=far)) == (10 + 2 * 4 * 20 + 2) * 1000


def test_the_slower_of_links_and_network_decides():
    slow = replace(PLAIN, bus_bytes_per_s=0.1e9)

    # 2 machines of 4 cards: 2 * 1/2 * 10 MB at 0.1 GB/s against 2 * 7/8 * 10 MB at 1 GB/s
    assert exchange_ns("all_reduce", 10_000_000, team(8, 2, network=slow)) == 100 * MS


def test_cards_at_a_shared_bus_take_bandwidth_from_each_other():
    shared = replace(PLAIN, bus_bytes_per_s=10e9, shared_bytes_per_s=20e9)

    assert shared.bus_of(2) == 10e9
    assert shared.bus_of(4) == pytest.approx(5e9)  # 1 / (1/10 + 2/20)


def test_a_peer_copy_is_latency_and_bytes():
    plain = replace(PLAIN, copy_us=2.0, copy_bytes_per_s=50e9)

    assert peer_copy_ns(50_000_000, plain) == 2_000 + MS


def test_a_collective_without_a_cost_is_refused():
    with pytest.raises(KernelSpecError, match="all_reduce"):
        sent_share("gossip", 4)


def test_machines_have_the_links_they_are_sold_with():
    found = {name: wiring(machine(name)).cards.name for name in ("p3.8xlarge", "p4d.24xlarge", "8x-RTX-3090")}

    assert found == {"p3.8xlarge": "nvlink2", "p4d.24xlarge": "nvlink3", "8x-RTX-3090": "pcie-geforce"}
    assert not link("pcie-geforce").peer_access


@pytest.mark.parametrize(
    ("name", "its_link"),
    [
        ("RTX-4090", "pcie-geforce"),
        ("GTX-1080Ti", "pcie3-switch"),
        ("P100-PCIe", "pcie3-host"),
        ("T4", "pcie3-server"),
        ("A40", "pcie4-server"),
        ("RTX-A6000", "pcie4-server"),
        ("RTX-6000-Ada", "pcie4-server"),
        ("RTX-PRO-6000-Max-Q", "pcie5-server"),
        ("TITAN-RTX", "pcie-geforce"),
        ("H100-PCIe", "pcie5-server"),
        ("B200-SXM", "nvlink5"),
        ("MI250-half", "pcie4-server"),
    ],
)
def test_cards_in_a_computer_of_nobody_s_have_the_link_of_their_kind(name, its_link):
    of_nobody = replace(machine("p3.8xlarge"), name="four of them", card=card(name))

    assert wiring(of_nobody).cards.name == its_link


def test_an_unknown_link_is_refused_with_near_names():
    with pytest.raises(LinkNotKnown, match="ethernet-10g"):
        wiring(machine("p3.8xlarge"), "ethernet-10")


# --- ranks that wait for each other -----------------------------------------------------------------------------

TWO_CARDS = replace(machine("p3.8xlarge"), n_cards=2)


def rank(work_ms, n_bytes=1 << 20, kind="all_reduce", host=False, phase="no_grad"):
    """A rank that works on its host for so long, and then comes to a collective of two."""
    return Tape(
        "",
        [
            BeginStep(1),
            HostWork(Activity.PYTHON, "work", work_ms * MS),
            RanksExchange(kind, n_bytes, (0, 1), 1, 0, phase),
            WaitExchange(1, 0, host),
            Sync("synchronize"),
            EndRun(),
        ],
        n_cards=2,
    )


def waits(timeline, rank):
    return [
        s
        for s in timeline.on(Activity.COLLECTIVE)
        if timeline.lanes[s.lane].device == rank and s.work.kind == "waiting for ranks"
    ]


def test_the_rank_that_comes_early_waits_for_the_late_one():
    timeline = RankTapes([rank(4), rank(10)], 2).price(TWO_CARDS)

    (early,) = waits(timeline, 0)
    assert early.duration_ns == 6 * MS
    assert not waits(timeline, 1)


def test_a_collective_ends_at_the_same_time_for_all():
    timeline = RankTapes([rank(4), rank(10)], 2).price(TWO_CARDS)

    ends = {s.end_ns for s in timeline.on(Activity.COLLECTIVE) if s.work.kind == "collective"}
    assert len(ends) == 1


def test_the_bytes_lie_on_the_links():
    timeline = RankTapes([rank(1), rank(1)], 2).price(TWO_CARDS)

    sent = list(timeline.on(Activity.TRANSFER))
    assert [timeline.lanes[s.lane].kind for s in sent] == [LaneKind.LINK] * 2
    assert [s.work.moved_bytes for s in sent] == [1 << 20] * 2  # 2 * 1/2


def test_a_host_that_waits_at_a_barrier_is_seen_to_wait_for_ranks():
    timeline = RankTapes([rank(4, 0, "barrier", host=True), rank(10, 0, "barrier", host=True)], 2).price(TWO_CARDS)

    waiting = [s for s in timeline.on(Activity.COMM_WAIT) if timeline.lanes[s.lane].device == 0]
    assert waiting[0].duration_ns > 6 * MS


def test_a_kernel_beside_a_collective_has_the_other_sms():
    queue = CardsQueue(0, n_cards=1, n_sms=80)
    queue.run_exchange("all_reduce", 0, 0, 0, 10 * MS, KernelWork("collective", n_blocks=8))

    assert queue._beside_talk(0, 0, 900) == 1000  # 72 of 80 SMs
    assert queue._beside_talk(0, 10 * MS - 1000, 1800) == 1900  # 900 done when it ends
    assert queue._beside_talk(0, 10 * MS, 900) == 900


def test_a_kernel_loses_the_link_s_share_while_data_move_and_only_sms_while_ranks_wait():
    queue = CardsQueue(0, n_cards=1, n_sms=80)
    queue.run_exchange("all_reduce", 0, 0, MS, 10 * MS, KernelWork("collective", n_blocks=8), beside_share=0.5)

    assert queue._beside_talk(0, 0, 900) == 1000  # it waits: 72 of 80 SMs
    assert queue._beside_talk(0, 2 * MS, 900) == 2000  # and half of their pace


def test_between_machines_the_network_says_what_kernels_beside_it_lose():
    def beside(ranks):
        player = CardsPlayer(CardsPricer(TWO_CARDS), None, 2)
        player.came_ns[1] = 0
        player.finish(RanksExchange("all_reduce", 8, ranks, 1, 0), 0, 10 * MS)
        return player.queue._beside_talk(0, 0, MS)

    links_own = wiring(TWO_CARDS)
    assert links_own.network.beside_share < links_own.cards.beside_share
    assert beside((0, 2)) < beside((0, 1))  # on two machines of two cards, and on one


def test_of_cards_that_differ_the_slowest_decides():
    alike = RankTapes([rank(4, 0)], 2).price(TWO_CARDS)
    unlike = RankTapes([rank(4, 0)], 2).price(TWO_CARDS, as_in_training=True)
    (exchange,) = [s for s in alike.on(Activity.COLLECTIVE) if s.work.kind == "collective"]

    late_ns = round(wiring(TWO_CARDS).cards.late_of(2) * exchange.start_ns)
    assert late_ns > 0
    assert unlike.duration_ns == alike.duration_ns + late_ns
    assert waits(unlike, 0)[0].duration_ns == late_ns


def test_a_busy_link_gives_a_collective_its_share_of_the_rate():
    half = replace(PLAIN, busy_share=0.5)

    assert half.busy().bus_bytes_per_s == 0.5 * PLAIN.bus_bytes_per_s
    assert PLAIN.busy_share < 1
    assert replace(PLAIN, busy_share=1.0).busy().bus_bytes_per_s == PLAIN.bus_bytes_per_s


@pytest.mark.parametrize(
    ("phase", "as_in_training", "busy"),
    [("backward", True, True), ("backward", False, False), ("no_grad", True, False)],
)
def test_collectives_of_a_backward_pass_find_the_link_busy_in_training(phase, as_in_training, busy):
    n_bytes, cards = 1 << 30, wiring(TWO_CARDS).cards
    timeline = RankTapes([rank(4, n_bytes, phase=phase)], 2).price(TWO_CARDS, as_in_training=as_in_training)

    (exchange,) = [s for s in timeline.on(Activity.COLLECTIVE) if s.work.kind == "collective"]
    assert exchange.duration_ns == exchange_ns("all_reduce", n_bytes, team(2, cards=cards.busy() if busy else cards))
    assert cards.busy().bus_bytes_per_s < cards.bus_bytes_per_s


def test_one_card_is_never_late_and_more_cards_have_a_later_slowest():
    spread = replace(PLAIN, late_share=0.01)

    assert spread.late_of(1) == 0
    assert spread.late_of(2) < spread.late_of(4) < spread.late_of(8)
    assert spread.late_of(8) == pytest.approx(0.01 * 1.4236, rel=0.02)  # the largest of eight normal draws, by tables


def test_with_one_tape_all_ranks_do_as_it_does():
    alone = RankTapes([rank(4)], 2).price(TWO_CARDS)

    assert not waits(alone, 0)
    assert alone.duration_ns == RankTapes([rank(4), rank(4)], 2).price(TWO_CARDS).duration_ns


def test_a_step_counts_the_samples_of_all_ranks():
    assert RankTapes([rank(4)], 2).price(TWO_CARDS).steps[0].n_samples == 2
    assert RankTapes([rank(4), rank(5)], 2).price(TWO_CARDS).steps[0].n_samples == 2


def test_ranks_that_call_different_collectives_are_told_so():
    with pytest.raises(RanksDisagree, match=r"rank 1 calls broadcast.*rank 0 calls all_reduce"):
        RankTapes([rank(1), rank(1, kind="broadcast")], 2).price(TWO_CARDS)


def test_entries_between_cards_survive_a_file():
    entries = [
        PeerCopy("copy", 0, 1, 8),
        CardsExchange("broadcast", 8, (0, 1)),
        RanksExchange("all_reduce", 8, (0, 1), 1, 0),
        WaitExchange(1, 0),
        Threads((0, 1), True),
    ]
    tape = Tape("x", entries, n_cards=2)

    assert tape_file.from_bytes(tape_file.to_bytes(tape)).entries == entries


# --- published tables -------------------------------------------------------------------------------------------


def size_of(payload):
    for unit, factor in (("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30)):
        if payload.endswith(unit):
            return int(payload.removesuffix(unit)) * factor
    return int(payload)


def nccl_rows(shared, context, column, n):
    """Bytes and seconds of an all-reduce, from bus rates or times of one table."""
    found = {}
    with (shared / "measured" / "nccl_allreduce.csv").open() as file:
        for row in csv.DictReader(file):
            if row["context"].startswith(context):
                n_bytes = size_of(row["payload"])
                cell = row["values"].split(";")[column].strip()
                rate = cell.endswith("GBps")
                found[n_bytes] = (
                    sent_share("all_reduce", n) * n_bytes / (float(cell[:-4]) * 1e9) if rate else float(cell) * 1e-6
                )
    return found


def mean_error(rows, link_name, n, n_machines=1, network="efa-3200g"):
    who = team(n, n_machines, link(link_name), link(network))
    errors = [abs(exchange_ns("all_reduce", n_bytes, who) * 1e-9 / s - 1) for n_bytes, s in rows.items()]
    return sum(errors) / len(errors)


@pytest.mark.parametrize(
    ("context", "column", "n", "n_machines", "name", "allowed"),
    [
        pytest.param("nccl-tests", 0, 8, 1, "nvlink3", 0.09, id="8 A100"),
        pytest.param("Real network", 0, 8, 1, "nvlink4", 0.04, id="8 H200"),
        pytest.param("Inter-node", 0, 8, 1, "nvlink5", 0.08, id="8 B200"),
        pytest.param("Inter-node", 1, 32, 4, "nvlink5", 0.07, id="32 B200 in 4 machines, from 256 KiB"),
    ],
)
def test_all_reduce_meets_the_published_sweeps(shared, context, column, n, n_machines, name, allowed):
    rows = nccl_rows(shared, context, column, n)
    if n_machines > 1:
        rows = {n_bytes: s for n_bytes, s in rows.items() if n_bytes >= 2**18}

    assert len(rows) >= 17
    assert mean_error(rows, name, n, n_machines) < allowed


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ("NV_1080Ti", "pcie3-switch"),
        ("NV_TitanX_Pascal", "pcie3-switch"),
        ("NV_P100", "pcie3-host"),
        ("NV_M40", "pcie3-host"),
        ("NV_TitanX", "pcie3-host"),
    ],
)
@pytest.mark.parametrize("n", [2, 4, 8])
def test_all_reduce_over_pcie_meets_deepbench(shared, gpu, name, n):
    rows = {}
    with gzip.open(shared / "measured" / "deepbench_allreduce.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["gpu"] == gpu and int(row["n"]) == n and row["algo"].startswith("NCCL"):
                rows[4 * int(row["floats"])] = float(row["time_ms"]) * 1e-3

    assert len(rows) >= 6
    assert mean_error(rows, name, n) < 0.08
