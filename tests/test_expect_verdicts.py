"""A run beside what was expected of it: a verdict on each account, what explains it, what to try next."""

from __future__ import annotations

import pytest

from gpututor.errors import ExpectationError
from gpututor.expect import judge, judge_accounts
from gpututor.expect.experiments import BUSY as BUSY_EXPERIMENT
from gpututor.expect.experiments import NEXT, next_experiment
from gpututor.expect.explanations import LESS, MORE
from gpututor.expect.verdicts import CIRCUMSTANCES, ranked
from gpututor.ledger import Account, charge
from tests.draw import draw

INPUT, LAUNCH, USEFUL = Account.WAITING_FOR_INPUT, Account.LAUNCH_OVERHEAD, Account.USEFUL


def verdict(seen: float, expected: float, step: float = 100, error_share: float = 0.25):
    """Of an input wait of `seen` where `expected` was, in a step that is expected to take `step`."""
    found = judge_accounts({INPUT: seen}, {INPUT: expected, USEFUL: step - expected}, error_share, "the model")
    return next(v for v in found.accounts if v.account is INPUT)


@pytest.mark.parametrize(
    ("seen", "expected", "words"),
    [
        (40, 40, "within"),
        (55, 40, "within"),  # 40 × 1.25 and 5 of the step
        (56, 40, "outside"),
        (27, 40, "within"),  # 40 / 1.25 less 5
        (26, 40, "outside"),
        (5, 0, "within"),  # nothing expected: a twentieth of the step
        (6, 0, "outside"),
    ],
)
def test_the_room_of_an_account_is_the_models_error_and_a_twentieth_of_the_step(seen, expected, words):
    assert verdict(seen, expected).difference.verdict == words


def test_an_account_within_its_room_is_not_explained():
    found = verdict(45, 40)

    assert (found.explanations, found.experiment) == ((), None)


def test_an_account_above_its_room_has_explanations_in_order_and_an_experiment():
    found = verdict(80, 40)

    assert found.explanations == MORE[INPUT]
    assert found.experiment is NEXT[INPUT]


def test_an_account_below_its_room_is_explained_and_needs_no_experiment():
    found = verdict(1, 40)

    assert found.explanations == LESS[INPUT]
    assert found.experiment is None


def test_accounts_outside_their_room_come_first_and_the_largest_of_them_first():
    found = judge_accounts(
        {INPUT: 60, LAUNCH: 90, Account.PAUSE: 11}, {INPUT: 20, LAUNCH: 30, Account.PAUSE: 10}, 0.1, "the model"
    )

    assert [v.account for v in found.accounts] == [LAUNCH, INPUT, Account.PAUSE]
    assert len(found.outside) == 2


def test_a_ledger_that_splits_its_busy_time_compares_line_by_line():
    found = judge_accounts({USEFUL: 10, Account.MEMORY_BOUND: 20}, {USEFUL: 10, Account.MEMORY_BOUND: 20}, 0.1, "it")

    assert {v.account for v in found.accounts} == {USEFUL, Account.MEMORY_BOUND}


def test_busy_time_that_one_side_does_not_split_is_one_line():
    found = judge_accounts({Account.BUSY_UNSPLIT: 30}, {USEFUL: 10, Account.MEMORY_BOUND: 20}, 0.1, "it")

    (busy,) = found.accounts
    assert (busy.account, busy.name, busy.difference.verdict) == (None, "busy", "within")


def test_seen_by_marks_launch_overhead_is_inside_the_busy_line():
    found = judge_accounts(
        {Account.BUSY_UNSPLIT: 90, INPUT: 10}, {LAUNCH: 60, USEFUL: 30, INPUT: 10}, 0.1, "it", by_marks=True
    )

    assert {v.name: v.difference.verdict for v in found.accounts} == {
        "forward, backward, optimizer": "within",
        "waiting for input": "within",
    }
    assert "gaps between kernels" in found.notes[0]


def test_busy_time_above_its_room_asks_for_a_look_at_the_kernels():
    found = judge_accounts({Account.BUSY_UNSPLIT: 90}, {USEFUL: 30}, 0.1, "it")

    assert found.accounts[0].experiment is BUSY_EXPERIMENT


def test_two_ledgers_of_different_length_compare_step_by_step():
    one = charge(draw(host="II", gpu="..", steps="11"))
    three = charge(draw(host="IIIIII", gpu="......", steps="112233"))

    assert judge(three, one, 0.1, "it").outside == ()


def test_a_ledger_with_steps_and_one_without_do_not_compare():
    with pytest.raises(ExpectationError, match="has 0 steps and the seen one 1"):
        judge(charge(draw(gpu="##", steps="11")), charge(draw(gpu="##")), 0.1, "it")


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("name", list(CIRCUMSTANCES))
def test_a_circumstance_brings_its_explanation_to_the_front_or_takes_it_away(name, holds):
    word = CIRCUMSTANCES[name]
    why = next(texts for texts in MORE.values() if any(word in text for text in texts))

    found = ranked(why, {name: holds})

    assert (word in found[0]) if holds else not any(word in text for text in found)
    assert set(found) <= set(why)


def test_beside_earlier_runs_an_explanation_speaks_of_before_and_not_of_a_model():
    found = judge_accounts({INPUT: 80}, {INPUT: 40, USEFUL: 60}, 0.1, "3 runs", runs=True)

    texts = [why for v in found.accounts for why in v.explanations]
    assert any("slower than before" in why for why in texts)
    assert not any("model" in why or "described" in why for why in texts)


def test_every_account_that_can_be_explained_has_an_experiment():
    assert all(next_experiment(account) is not None for account in MORE)


def test_the_text_names_step_accounts_explanations_and_experiment():
    text = judge_accounts({INPUT: 6e6, LAUNCH: 2e6}, {INPUT: 2e6, LAUNCH: 2e6}, 0.2, "the cost model").text

    lines = text.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    assert lines[0].startswith("A step: 8.00 ms seen, 4.00 ms expected (3.33 ms to 4.80 ms by the cost model): outside")
    assert lines[1].startswith("  waiting for input: 6.00 ms seen, 2.00 ms expected (1.47 ms to 2.60 ms): outside")
    assert lines[2] == f"    perhaps {MORE[INPUT][0]}"
    assert any(line.startswith("    to tell: iterate over the loader alone") for line in lines)


def test_a_run_as_expected_says_so_in_one_line():
    text = judge_accounts({INPUT: 40.0}, {INPUT: 40.0}, 0.1, "the model").text

    assert text.endswith("Every account is within its room.")
