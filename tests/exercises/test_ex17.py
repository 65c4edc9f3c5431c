"""Exercises 17.1 and 17.2: machines with a planted fault, which the doctor agrees on, and the cheapest machine."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from gpututor.doctor.faults import Fault, planted
from gpututor.doctor.finding import State
from gpututor.doctor.planted import examination
from gpututor.exercises import ex17, sick_machines
from gpututor.grading import judging
from tests.exercises.answers import Answers, Wrong

SEED = 5
IF_IT_WERE = {
    Fault.CPU_WHEEL: "its version would say so",
    Fault.WRONG_DEVICE: "the card would rest",
    Fault.NEIGHBOUR: "Count the programs",
    Fault.HEAT: "hot and slow at once",
    Fault.POWER: "below the board's default",
    Fault.LINK: "narrower or older now",
    Fault.SHARED_MEMORY: "little of it, and no workers",
    Fault.FEW_CPUS: "fewer would be granted",
    Fault.GAUGE: "busy at full clock",
}
SOLUTION = """
def cheapest(machines, n_samples, needs_gib, deadline_h):
    best = None
    for name, usd, rate, gib in machines:
        hours = n_samples / rate / 3600
        if gib >= needs_gib and hours <= deadline_h and (best is None or hours * usd < best[0]):
            best = (hours * usd, name)
    return best and best[1]
"""
BY_THE_HOUR = SOLUTION.replace("hours * usd", "usd")
FASTEST = SOLUTION.replace("hours * usd", "hours")
LATE = SOLUTION.replace("hours <= deadline_h", "True")
SMALL = SOLUTION.replace("gib >= needs_gib", "True")
EITHER = SMALL.replace("hours <= deadline_h", "True")
NEVER = "def cheapest(machines, n_samples, needs_gib, deadline_h):\n    return None\n"
ANSWERS = {
    "17.1": Answers(
        lambda case: sick_machines.OPTIONS[sick_machines.fault_of(case["seed"])],
        tuple(
            Wrong(sick_machines.OPTIONS[fault], IF_IT_WERE[fault], hint=1)
            for fault in sick_machines.ASKED
            if fault is not sick_machines.fault_of(SEED)
        ),
        dict(sick_machines.case_of(SEED)),
    ),
    "17.2": Answers(
        SOLUTION,
        (
            Wrong(BY_THE_HOUR, "whose hour is the cheapest", hint=2, earned=0.6),
            Wrong(FASTEST, "the fastest", hint=2, earned=0.6),
            Wrong(LATE, "isn't done within", hint=3, earned=0.8),
            Wrong(SMALL, "one machine alone has them", hint=3, earned=0.8),
            Wrong(EITHER, "isn't done within", hint=3, earned=0.4),
            Wrong(NEVER, "you give None", hint=1),
        ),
    ),
}

# --- 17.1 ------------------------------------------------------------------------------------------------------------


def found(patient):
    return {one.id: one for one in examination(patient.facts).findings()}


def test_the_doctor_finds_what_the_seed_planted_and_no_other_fault():
    every = {fault.check for fault in sick_machines.ASKED} - {None}
    for seed in range(60):
        fault, ours = sick_machines.fault_of(seed), found(sick_machines.machine_of(seed))
        bad = {name for name, one in ours.items() if one.state in (State.FAIL, State.WARN)}
        told = {fault.check} - {None}

        # a card that trains is in use by somebody, which is all that this check can see
        assert bad & every - {"card.others"} == told - {"card.others"}, (seed, fault)
        assert told <= bad


def test_every_fault_is_planted_by_some_seed_and_none_by_most():
    by_seed = Counter(map(sick_machines.fault_of, range(900)))

    assert set(by_seed) == set(sick_machines.ASKED)
    assert max(by_seed.values()) < 2 * min(by_seed.values())


def test_the_readings_hold_no_word_of_the_fault():
    for seed in range(30):
        table = sick_machines.case_of(seed)["words"]["table"]

        assert sick_machines.fault_of(seed).title not in table
        assert sorted(sick_machines.case_of(seed)["options"]) == sorted(sick_machines.OPTIONS.values())


def test_no_two_machines_of_a_fault_are_alike():
    tables = [str(sick_machines.readings(planted(Fault.HEAT, k))) for k in range(20)]

    assert len(set(tables)) == 20


def test_neighbours_have_different_machines():
    assert len({sick_machines.seed_for(f"learner {k}") for k in range(50)}) > 45


def test_graded_it_is_the_seeds_own_truth_that_counts():
    case = json.loads(json.dumps(sick_machines.case_of(SEED)))
    made_up = case | {"options": ["Mine"]}
    right = ANSWERS["17.1"].right_for(case)
    told = [
        judging.judge_item({"number": "17.1", "answer": answer, "case": each, "hidden": []})
        for answer, each in ((right, case), ("Mine", made_up))
    ]

    assert [(each["share"], each["case"]) for each in told] == [(1.0, "ours"), (0.0, "differs")]


# --- 17.2 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_in_each_call_one_rule_alone_decides(seed):
    price, deadline, memory, nobody = ex17.calls_of(seed)
    rows = {row[0]: row for row in price[0]}
    by_job = min(rows, key=lambda name: rows[name][1] / rows[name][2])
    by_hour = min(rows, key=lambda name: rows[name][1])
    quickest = max(rows, key=lambda name: rows[name][2])

    assert len({by_job, by_hour, quickest}) == 3
    assert ex17.expected(*price) == by_job
    assert ex17.expected(*deadline) == ex17.expected(*memory) == quickest
    assert ex17.expected(*nobody) is None
    in_time = [row for row in deadline[0] if deadline[1] / row[2] <= 3600 * deadline[3]]
    large = [row for row in memory[0] if row[3] >= memory[2]]
    assert len(in_time) == len(large) == 1


def test_the_pages_own_machines_are_tried_too():
    rows = [["a", 1.0, 100.0, 16.0], ["b", 2.0, 1000.0, 16.0]]
    case = ex17.case_cheapest(rows, 1000, 0.0)
    judged = ex17.CHEAPEST.check(SOLUTION, case)

    assert judged.state == "right"
    assert "it is b" in judged.text


def test_without_two_machines_nothing_is_asked():
    assert ex17.case_cheapest([["a", 1.0, 100.0, 16.0]], 1000, 0.0) == {}


def test_an_answer_that_is_no_name_is_told():
    judged = ex17.CHEAPEST.check("def cheapest(*_):\n    return 7\n", {})

    assert judged.state == "wrong"
    assert judged.earned_share == 0
