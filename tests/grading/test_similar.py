"""Pairs of answers: a copy with other names is seen, one's own way is not, and the starter is nobody's."""

from __future__ import annotations

from gpututor.grading import similar

STARTER = "def sm_fill(n_blocks, n_sms):\n    # the share\n    ...\n"
LONG = """
def sm_fill(n_blocks, n_sms):
    rounds = -(-n_blocks // n_sms)
    squares = rounds * n_sms
    taken = 0
    for each in range(rounds):
        left = n_blocks - each * n_sms
        taken += min(left, n_sms)
    share = taken / squares
    if share > 1:
        raise ValueError('more than all')
    return share
"""
COPY = (
    LONG.replace("rounds", "waves")
    .replace("taken", "t")
    .replace("each", "k")
    .replace("    share =", "    # my own idea\n\n    share =")
    .replace("'more than all'", '"too much"')
)
OTHER = """
import math

def sm_fill(n_blocks, n_sms):
    full, rest = divmod(n_blocks, n_sms)
    columns = [n_sms] * full + ([rest] if rest else [])
    return sum(columns) / (n_sms * math.ceil(n_blocks / n_sms))
"""


def found(**answers):
    return [pair.ids for pair in similar.pairs("1.2", STARTER, answers)]


def test_a_copy_with_other_names_comments_and_layout_is_seen():
    assert found(a=LONG, b=COPY, c=OTHER) == [("a", "b")]


def test_all_of_a_copy_is_shared():
    assert similar.pairs("1.2", STARTER, {"a": LONG, "b": COPY})[0].share == 1.0


def test_its_lines_are_shown_side_by_side():
    lines = similar.pairs("1.2", STARTER, {"a": LONG, "b": COPY})[0].lines

    assert "taken += min(left, n_sms)" in lines[0]
    assert "t += min(left, n_sms)" in lines[1]


def test_two_ways_of_ones_own_are_not_alike():
    assert found(a=LONG, b=OTHER) == []


def test_what_the_starter_holds_is_nobodys():
    code = LONG.replace("def", "def")

    assert similar.pairs("1.2", code, {"a": LONG, "b": COPY}) == []


def test_what_many_in_the_class_write_is_how_one_writes_it():
    assert found(**{f"s{k}": LONG for k in range(5)}) == []


def test_short_answers_are_no_sign_of_anything():
    assert found(a="def sm_fill(n, s):\n    return n / s\n", b="def sm_fill(n, s):\n    return n / s\n") == []


def test_code_that_is_no_python_is_compared_too():
    broken = "def f(:\n" + "\n".join(f"    step {k} is to take the next of all {k}" for k in range(9))

    assert found(a=broken, b=broken.replace("def", "DEF", 1)) == [("a", "b")]


def test_the_order_of_learners_changes_nothing():
    one = similar.pairs("1.2", STARTER, {"a": LONG, "b": COPY, "c": OTHER, "d": OTHER + "\n"})
    other = similar.pairs("1.2", STARTER, {"d": OTHER + "\n", "c": OTHER, "b": COPY, "a": LONG})

    assert one == other
