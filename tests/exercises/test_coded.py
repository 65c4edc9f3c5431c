"""Code that runs on a simulated card in its own process: what comes back is counted here, and forging it fails."""

from __future__ import annotations

import pytest

from gpututor.cards import machine
from gpututor.exercises import coded
from gpututor.exercises.coded import close_to, noted, on_card
from gpututor.lab.learner_code import LearnerRun
from gpututor.lab.on_card import packed
from gpututor.model.tape import BeginStep, EndRun, Sync, Tape
from gpututor.replay import with_slower_host

PRODUCT = "def work(a, b):\n    return a @ b\n"
N = 64


@pytest.fixture(scope="module")
def product():
    launched, sentence = on_card(PRODUCT, "work", "gpututor.exercises.on_card.product:run", [[N]])
    assert sentence == ""
    return launched[0]


def test_the_product_is_the_one_that_python_computes(product):
    a = [[float((r + c) % 5) for c in range(N)] for r in range(N)]
    b = [[float((r * c) % 3) for c in range(N)] for r in range(N)]
    ours = [[sum(a[r][k] * b[k][c] for k in range(N)) for c in range(N)] for r in range(N)]

    assert close_to(product.gave, ours)


def test_its_work_is_two_flop_for_each_of_n_cubed(product):
    assert product.flop(machine("p3.2xlarge")) == 2 * N**3


def test_one_op_and_no_wait_but_the_last(product):
    assert (product.n_ops, product.n_waits, product.n_copies) == (1, 0, 0)


def test_it_is_priced_by_the_judge_on_any_machine(product):
    here = machine("p3.2xlarge")

    assert product.on(with_slower_host(here, 2)).step_ns > 1.5 * product.on(here).step_ns


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def work(a, b):\n    return a.item()\n", "Line 2"),
        ("def other(a, b):\n    return a\n", "no function called work"),
        ("import os\ndef work(a, b):\n    os._exit(0)\n", "ended its own process"),
    ],
    ids=["an error", "another name", "it leaves"],
)
def test_code_that_fails_is_one_sentence(code, said):
    launched, sentence = on_card(code, "work", "gpututor.exercises.on_card.product:run", [[N]])

    assert launched == []
    assert said in sentence


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [([1.0], [1.0, 2.0]), ("1", 1.0), (None, 1.0), ([float("nan")], [1.0]), ([[1.0]], [1.0]), (True, 1.0), (1.1, 1.0)],
)
def test_what_differs_in_form_or_value_is_not_close(theirs, ours):
    assert not close_to(theirs, ours)


def test_what_was_launched_is_heard_inside_the_block_only(monkeypatch):
    told = {"tape": packed(Tape("it", [BeginStep(), Sync("synchronize"), EndRun()], [None])), "gave": 7}
    monkeypatch.setattr(coded, "run_learner", lambda *_, **__: LearnerRun((told, told)))
    with noted() as heard:
        launched, _ = on_card(PRODUCT, "work", "no.such:harness")
    on_card(PRODUCT, "work", "no.such:harness")

    assert heard == launched
    assert [each.gave for each in heard] == [7, 7]


def test_rounding_is_close():
    assert close_to([[0.1 + 0.2, 1e-9]], [[0.3, 0.0]])
