"""A submission: what is saved is what is read; whatever was changed, damaged or made up is refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from gpututor.errors import NothingToSubmit, SubmissionRefused
from gpututor.exercises.form import Judged
from gpututor.exercises.keeping import keep_given, keep_judged
from gpututor.exercises.registry import EXERCISES, exercise
from gpututor.exercises.submission import (
    MAX_BYTES,
    Answer,
    Submission,
    collect,
    content_hash,
    from_bytes,
    has_answers,
    read,
    save,
    to_text,
)
from gpututor.store import Store

NOON = "2026-01-02T12:00:00+00:00"
ONE = Submission(
    "s123", "Zoë", {"3.1": Answer("224", {"small": 16, "words": {"card": "V100"}}, NOON)}, NOON, {"torch": "2.13.0"}
)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    return Store("ann", now=lambda: datetime(2026, 1, 2, 12, tzinfo=timezone.utc))


def told(one: Submission = ONE) -> dict:
    return json.loads(to_text(one))


def sealed(changed: dict) -> bytes:
    """The file with a hash that fits, as somebody makes it who knows how."""
    return json.dumps(changed | {"hash": content_hash(changed)}).encode()


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
moments = st.datetimes(timezones=st.just(timezone.utc)).map(datetime.isoformat)
answers = st.builds(Answer, st.text(max_size=40), st.dictionaries(st.text(max_size=4), plain, max_size=3), moments)
submissions = st.builds(
    Submission,
    st.text(min_size=1, max_size=20).filter(str.strip),
    st.text(max_size=20),
    st.dictionaries(st.sampled_from([one.number for one in EXERCISES]), answers, max_size=4),
    moments,
    st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=2),
)


@settings(deadline=None)
@drawn(submissions)
def test_what_is_saved_is_what_is_read(one):
    assert from_bytes(to_text(one).encode(), "a.json") == one


def test_a_file_is_read_as_it_was_saved(tmp_path):
    save(ONE, tmp_path / "a.json")

    assert read(tmp_path / "a.json") == ONE


@settings(deadline=None)
@drawn(submissions)
def test_the_hash_does_not_hang_on_order_or_spaces(one):
    shuffled = dict(reversed(told(one).items()))

    assert from_bytes(json.dumps(shuffled, indent=7).encode(), "a.json") == one


# --- what is collected -------------------------------------------------------------------------------------------


def test_an_answer_comes_with_its_case_and_time(store):
    keep_given(store, exercise("3.1"), "224", {"small": 16})

    assert collect(store).answers == {"3.1": Answer("224", {"small": 16}, NOON)}


def test_an_answer_that_was_never_checked_is_saved_too(store):
    keep_given(store, exercise("3.1"), "224", {})

    assert has_answers(store)


def test_the_answer_that_stands_is_saved_rather_than_the_one_judged(store):
    keep_judged(store, exercise("3.1"), "224", {}, Judged("right", "So it is."))
    keep_given(store, exercise("3.1"), "225", {})

    assert collect(store).answers["3.1"].answer == "225"


def test_no_verdict_is_in_the_file(store):
    keep_judged(store, exercise("3.1"), "224", {}, Judged("right", "So it is."))
    text = to_text(collect(store))

    assert "right" not in text
    assert "So it is." not in text


def test_a_blank_answer_is_none(store):
    keep_given(store, exercise("3.1"), "  ", {})

    assert not has_answers(store)


def test_without_answers_nothing_is_saved(store):
    with pytest.raises(NothingToSubmit, match="no answers are kept for ann"):
        collect(store)


def test_the_id_is_the_progress_files_where_none_is_given(store):
    keep_given(store, exercise("3.1"), "224", {})

    assert (collect(store).learner_id, collect(store, "s1", "Ann").learner_id) == ("ann", "s1")


def test_an_answer_from_before_times_were_kept_counts_as_given_now(store):
    store.put("03", "exercise 3.1 answer", "224")

    assert collect(store).answers["3.1"] == Answer("224", {}, NOON)


# --- what is refused ---------------------------------------------------------------------------------------------


def with_answer(**changed) -> dict:
    whole = told()
    whole["answers"]["3.1"] |= changed
    return whole


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "is damaged: it is no JSON"),
    "cut": (lambda: to_text(ONE).encode()[:-9], "is damaged: it is no JSON"),
    "nested without an end": (lambda: b"[" * 100_000, "is damaged: it is no JSON"),
    "a list": (lambda: b"[]", "is damaged: it is no JSON object"),
    "a number that no JSON has": (lambda: b'{"format": NaN}', "is damaged: it is no JSON"),
    "a number beyond all": (
        lambda: to_text(ONE).replace('"small": 16', '"small": 1e999').encode(),
        "its hash doesn't fit",
    ),
    "an endless number": (lambda: b'{"format": ' + b"9" * 10_000 + b"}", "is damaged: it is no JSON"),
    "not UTF-8": (lambda: to_text(ONE).encode().replace(b"V100", b"V\xff00"), "is not UTF-8 text"),
    "too large": (lambda: b" " * MAX_BYTES + to_text(ONE).encode(), "is larger than 2 MiB"),
    "another format": (lambda: sealed(told() | {"format": "gpututor-progress"}), "is no submission"),
    "another version": (lambda: sealed(told() | {"version": 2}), "is of version 2, and this gpututor reads version 1"),
    "a version that is true": (lambda: sealed(told() | {"version": True}), "is of version True"),
    "an edited answer": (lambda: to_text(ONE).replace('"224"', '"225"').encode(), "its hash doesn't fit"),
    "an edited time": (lambda: to_text(ONE).replace("T12:", "T11:", 1).encode(), "its hash doesn't fit"),
    "another learner": (lambda: to_text(ONE).replace("s123", "s124").encode(), "its hash doesn't fit"),
    "a hash that is no text": (lambda: json.dumps(told() | {"hash": 7}).encode(), "its hash doesn't fit"),
    "an answer twice": (
        lambda: to_text(ONE).replace('"answer": "224"', '"answer": "1", "answer": "224"').encode(),
        'has the entry "answer" twice',
    ),
    "an exercise twice": (
        lambda: to_text(ONE).replace('"answers": {', '"answers": {"3.1": {}, ').encode(),
        'has the entry "3.1" twice',
    ),
    "an unknown exercise": (
        lambda: sealed(told() | {"answers": {"99.1": told()["answers"]["3.1"]}}),
        "answers an exercise 99.1",
    ),
    "an exercise under another spelling": (
        lambda: sealed(told() | {"answers": {"03.1": told()["answers"]["3.1"]}}),
        "answers an exercise 03.1",
    ),
    "no hash": (lambda: json.dumps({k: v for k, v in told().items() if k != "hash"}).encode(), "is damaged"),
    "a verdict": (lambda: sealed(told() | {"earned": 10}), "earned"),
    "a verdict in an answer": (lambda: sealed(with_answer(state="right")), "needs an answer, a case and a time"),
    "an answer that is no text": (lambda: sealed(with_answer(answer=224)), "needs an answer as text"),
    "a case that is no object": (lambda: sealed(with_answer(case=[])), "a case as an object"),
    "a time in no zone": (lambda: sealed(with_answer(at="2026-01-02T12:00:00")), "a UTC time"),
    "a time in another zone": (lambda: sealed(with_answer(at="2026-01-02T12:00:00+02:00")), "a UTC time"),
    "answers in a list": (lambda: sealed(told() | {"answers": []}), "its answers are no object"),
    "an answer in a list": (lambda: sealed(told() | {"answers": {"3.1": []}}), "needs an answer, a case and a time"),
    "no learner": (lambda: sealed(told() | {"learner": None}), "its learner needs an id and a name"),
    "a learner without an id": (lambda: sealed(told() | {"learner": {"id": " ", "name": ""}}), "has no id"),
    "a name without an end": (
        lambda: sealed(told() | {"learner": {"id": "a", "name": "b" * 201}}),
        "up to 200 characters",
    ),
    "versions that are no texts": (lambda: sealed(told() | {"versions": {"torch": 2}}), "its versions are no texts"),
    "saved at no time": (lambda: sealed(told() | {"saved_at": 5}), "saved_at is no UTC time"),
}


@pytest.mark.parametrize(("raw", "says"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused(tmp_path, raw, says):
    path = tmp_path / "handed in.json"
    path.write_bytes(raw())

    with pytest.raises(SubmissionRefused) as refused:
        read(path)
    assert str(refused.value).startswith("handed in.json ")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@settings(deadline=None)
@drawn(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(raw):
    with pytest.raises(SubmissionRefused):
        from_bytes(raw, "a.json")


@settings(deadline=None)
@drawn(st.dictionaries(st.sampled_from(sorted(told())), plain))
def test_no_data_with_a_fitting_hash_raises_anything_else(changed):
    try:
        from_bytes(sealed(told() | changed), "a.json")
    except SubmissionRefused:
        return
    assert {"format", "version", "answers"}.isdisjoint(changed) or changed.get("answers") == {}


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(SubmissionRefused, match="is no file"):
        read(tmp_path)


def test_what_would_not_be_read_is_not_saved(tmp_path):
    huge = Submission("a", "", {"3.2": Answer("#" * MAX_BYTES, {}, NOON)}, NOON)

    with pytest.raises(SubmissionRefused, match="larger than 2 MiB"):
        save(huge, tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []
