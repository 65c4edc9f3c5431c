"""What is known of every cause before any run, and that the rules say the same."""

from __future__ import annotations

import pytest

from gpututor.causes import KNOWN, Cause, Thresholds, cause_of, find_causes
from gpututor.ledger import BUSY, IDLE, Account
from gpututor.page.course import lesson
from gpututor.timeline import Label, Origin
from tests.draw import draw
from tests.test_causes import SIMULATED

each_cause = pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.name.lower())


@each_cause
def test_a_cause_has_a_symptom_a_gauge_and_a_change(cause):
    known = KNOWN[cause]

    assert all((known.symptom, known.gauge, known.change))
    assert known.change.endswith(".")
    assert not known.symptom.endswith(".")
    assert not known.gauge.endswith(".")


@each_cause
def test_the_lesson_of_a_cause_is_about_one_of_its_accounts(cause):
    known = KNOWN[cause]
    topics = set(lesson(known.lesson).topics)

    about_no_account = (Cause.NONE_FOUND, Cause.CANNOT_TELL, Cause.TIMER_SUSPECT)
    assert topics & {*known.accounts, known.part_of} or cause in about_no_account


def test_no_account_has_two_causes():
    claimed = [account for known in KNOWN.values() for account in known.accounts]

    assert len(claimed) == len(set(claimed))


def test_every_wait_has_a_cause():
    assert [account for account in IDLE if cause_of(account) is None] == []


def test_the_accounts_without_a_cause_are_those_that_nothing_is_said_about():
    silent = {account for account in BUSY if cause_of(account) is None}

    assert silent == {Account.LATENCY_BOUND, Account.BUSY_UNSPLIT, Account.USEFUL}


def test_every_cause_is_known():
    assert list(KNOWN) == list(Cause)


@pytest.mark.parametrize(
    ("cause", "host", "gpu"),
    [
        (Cause.WAITING_FOR_INPUT, "IIIIIIaa", "......##"),
        (Cause.BLOCKING_SYNCS, "aSSSSSbb", ".aa...bb"),
    ],
)
def test_a_finding_says_what_is_known_of_its_cause(cause, host, gpu):
    (found,) = (one for one in find_causes(draw(host=host, gpu=gpu, label=SIMULATED)) if one.cause is cause)

    assert (found.change, found.lesson) == (KNOWN[cause].change, KNOWN[cause].lesson)


def test_a_finding_on_a_job_without_kernels_names_the_lesson_about_the_machine():
    (found,) = find_causes(draw(host="PPPP", gpu="....", label=Label(Origin.MEASURED)))

    assert (found.cause, found.lesson) == (Cause.CANNOT_TELL, 17)


def test_a_cause_is_named_from_its_threshold_on_and_not_below():
    timeline = draw(host="I" * 10 + "." * 90, gpu="." * 10 + "#" * 90, steps="1" * 100, label=SIMULATED)

    def named(least: float) -> bool:
        found = find_causes(timeline, thresholds=Thresholds(idle_share=least))
        return any(one.cause is Cause.WAITING_FOR_INPUT for one in found)

    assert named(0.10)
    assert not named(0.11)
