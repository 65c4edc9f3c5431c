"""Workloads side by side: limits, money, and a reader's number against what is possible."""

from __future__ import annotations

import re

import pytest

import gpututor.page as gt
from gpututor.ledger import Account, Ledger
from gpututor.timeline import Label, Origin

EVIL = '<script>alert("x")</script>'
LABEL = Label(Origin.SIMULATED, "V100-SXM2-16GB", "p3.2xlarge")


def ledger(**ns):
    charged = {Account[name.upper()]: each for name, each in ns.items()}
    return Ledger(sum(charged.values()), charged, LABEL, sum(charged.values()), 1, 1)


@pytest.mark.parametrize(("bytes_ns", "flop_ns", "bold"), [(3000.0, 10.0, "3.00"), (10.0, 4000.0, "4.00")])
def test_the_longer_limit_is_bold(bytes_ns, flop_ns, bold):
    shown = gt.limits_table([("one", "fp32", bytes_ns, flop_ns, 5000.0)])

    assert re.findall(r"<b>([\d.]+)", shown) == [bold]


def test_each_workload_has_a_line_with_its_format():
    shown = gt.limits_table([("one", "fp32", 1.0, 2.0, 3.0), ("two", "fp16", 1.0, 2.0, 3.0)])

    assert re.findall(r'<th scope="row">(\w+)<small>peak of (\w+)', shown) == [("one", "fp32"), ("two", "fp16")]


def test_useful_money_is_the_price_times_mfu():
    # a quarter useful of $4.00; a half to memory
    shown = gt.useful_money([("one", ledger(useful=1, memory_bound=2, pause=1))], 4.0)

    assert "$1.00" in shown
    assert "$2.00 to memory-bound" in shown


def test_where_all_is_useful_nothing_is_lost():
    assert "nothing is lost" in gt.useful_money([("one", ledger(useful=5))], 3.06)


def test_the_longer_of_answer_and_limit_fills_its_bar():
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%", gt.against_limit(1800.0, 900.0, "GB/s"))]

    assert widths == [100.0, 50.0]


def test_an_answer_of_nothing_is_drawn_too():
    assert "0 GB/s" in gt.against_limit(0.0, 900.0, "GB/s")


def test_the_two_bars_say_what_is_known_and_what_is_not():
    assert 'aria-label="busy; used: ? is not known yet"' in gt.two_bars("busy", "used: ?")


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda: gt.two_bars(EVIL, EVIL), id="bars"),
        pytest.param(lambda: gt.limits_table([(EVIL, EVIL, 1.0, 1.0, 1.0)]), id="limits"),
        pytest.param(lambda: gt.useful_money([(EVIL, ledger(useful=1))], 1.0), id="money"),
        pytest.param(lambda: gt.against_limit(1.0, 2.0, EVIL, limit_name=EVIL), id="limit"),
    ],
)
def test_text_from_outside_never_becomes_markup(shown):
    assert "<script" not in shown()
