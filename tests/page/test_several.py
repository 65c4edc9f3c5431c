"""What lesson 16 says of its numbers: the sentences turn with them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from gpututor.lookup import machine_named
from gpututor.page.lessons.several import ETHERNET, NVLINK, PCIE, Several, boxes

MS = 1e6


class Drawn(Several):
    """Steps in milliseconds by link, for 1, 2, 4 and 8 cards, in the place of a run's."""

    steps_ms: ClassVar = {NVLINK: (800, 410, 210, 110), PCIE: (800, 500, 450, 700), ETHERNET: (800, 850, 900, 1000)}

    def step_ns(self, n, link):
        return MS * self.steps_ms[link][(1, 2, 4, 8).index(n)]

    def ns(self, key, link):
        found = {"bucket-1000": 1.2, "dp-8": 1.5, "each": 8.0, "last": 2.0}
        return found[key] * self.step_ns(8, link) if key in found else None


class Fast(Drawn):
    """Links that cost next to nothing."""

    steps_ms: ClassVar = dict.fromkeys((NVLINK, PCIE, ETHERNET), (800, 400, 200, 100))


def drawn(kind=Drawn):
    return kind(machine_named(), boxes(machine_named()), {}, {})


def test_it_tells_where_eight_are_slower_than_two():
    over_pcie, over_ethernet = drawn().slower_said.replace("\u00a0", " ").removesuffix(".").split(". ")

    assert over_pcie == "Over PCIe eight take 700 ms and two 500 ms"
    assert over_ethernet == "Over Ethernet eight take 1.00 s and two 850 ms"


def test_it_says_so_where_they_are_nowhere_slower():
    assert "nowhere slower" in drawn(Fast).slower_said


def test_the_fastest_number_of_cards_is_told_for_each_link():
    assert drawn().fastest_said == "Fastest of 1, 2, 4 and 8: 8 with NVLink, 4 over PCIe, 1 over Ethernet."


def test_eight_boxes_are_slower_or_faster_than_one():
    assert "wait longer than with one" in drawn().ethernet_said
    assert "8.0 times as fast" in drawn(Fast).ethernet_said


def test_a_million_tokens_cost_the_cards_times_their_time():
    # 16 sequences of 512 tokens in 100 ms on 8 cards at $3.06 an hour
    expected = 8 * 3.06 / 3600 * 0.1 * 1e6 / (16 * 512)

    assert drawn(Fast).usd(8, ETHERNET) == pytest.approx(expected)


def test_without_a_price_there_is_none():
    free = replace(machine_named(), usd_per_hour=None)

    assert Drawn(free, boxes(free), {}, {}).usd(8, ETHERNET) is None


def test_what_data_parallel_and_no_sync_are_worth_follows_the_numbers():
    assert drawn().one_process_said == "With NVLink it takes 55.0\u00a0ms longer than DDP."
    assert "8.00\u00a0s with an exchange after each, and 2.00\u00a0s with one at the end" in drawn().no_sync_said()
    assert "3.2 times as fast as one card" in drawn().no_sync_said()  # 8 steps of 800 ms on one, 2 s here


def test_all_boxes_have_the_same_cards_at_the_same_price():
    found = boxes(machine_named())

    assert {box.card.name for box in found.values()} == {"V100-SXM2-16GB"}
    assert {box.usd_per_card_hour for box in found.values()} == {3.06}
