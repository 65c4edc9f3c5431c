"""No case, however it was invented, lets a judge of numbers or choices hang or hand out marks for no number."""

from __future__ import annotations

import importlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpututor.exercises.registry import EXERCISES
from gpututor.grading.judging import judge_item

TYPED = [one for one in EXERCISES if one.kind != "code"]
NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0, 0.0, -1, 1e308, 5e-324, 2**1024]),
)
VALUES = st.one_of(NUMBERS, st.none(), st.booleans(), st.text(max_size=5), st.lists(st.integers(), max_size=3))
ANSWERS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["nan", "inf", "-inf", "1e999", "NaN", "0x10", "1e-999", "many", "++1", "\u0661"]),
    st.integers(-(10**20), 10**20).map(str),
)
NO_NUMBERS = st.sampled_from(["nan", "inf", "-inf", "NaN", "many", "++1", "one", "[1]", "None", "True", "\u221e"])
few = settings(max_examples=60, deadline=1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
each_typed = pytest.mark.parametrize("one", TYPED, ids=lambda one: one.number)


def known(one):
    return importlib.import_module(f"tests.exercises.test_ex{one.lesson:02d}").ANSWERS[one.number].case


def changed(case, draw, values):
    """The case with some of its values, at any depth, taken out or changed for others."""
    found = {}
    for key, value in case.items():
        what = draw(st.sampled_from(["kept", "kept", "changed", "gone"]))
        if what == "kept":
            found[key] = changed(value, draw, values) if isinstance(value, dict) else value
        elif what == "changed":
            found[key] = draw(values)
    return found


def judged(one, answer, case):
    return judge_item({"number": one.number, "answer": answer, "case": case, "hidden": []})


@each_typed
@few
@given(data=st.data())
def test_no_invented_case_breaks_the_judge(one, data):
    case = changed(known(one), data.draw, VALUES)
    told = judged(one, data.draw(ANSWERS), case)

    assert told["state"] in ("right", "wrong", "partial", "unanswered")
    assert 0 <= told["share"] <= 1
    json.dumps(told, allow_nan=False)


@each_typed
@few
@given(data=st.data())
def test_what_is_no_number_earns_nothing_in_any_case(one, data):
    case = changed(known(one), data.draw, NUMBERS)

    assert judged(one, data.draw(NO_NUMBERS), case)["share"] == 0
