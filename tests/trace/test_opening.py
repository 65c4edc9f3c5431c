"""Reading in blocks: the same records wherever a block ends, and what is damaged costs no more than itself."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpututor.errors import TimelineError
from gpututor.trace import mending, opening, unpacking
from gpututor.trace.opening import opened
from gpututor.trace.records import Record, record_of
from gpututor.trace.unpacking import blocks_of


def kernel(k, **more):
    return {"ph": "X", "cat": "kernel", "name": f"k{k}", "ts": 10 * k, "dur": 5, "pid": 0, "tid": 7} | more


def names(path):
    return [record.name if type(record) is Record else record["name"] for record in opened(path).events]


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.json"


# --- blocks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("block_bytes", [40, 101, 1000])
def test_it_does_not_matter_where_a_block_ends(path, monkeypatch, block_bytes, indent):
    events = [kernel(k, args={"stream": 7, "lists": [{"a": k}, {"b": "},{"}]}) for k in range(40)]
    document = {"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": events, "traceName": "[x]"}
    monkeypatch.setattr(unpacking, "BLOCK_BYTES", block_bytes)
    found = opened(written(path, json.dumps(document, indent=indent)))

    assert [record.name for record in found.events] == [f"k{k}" for k in range(40)]
    assert found.header == {key: value for key, value in document.items() if key != "traceEvents"}
    assert found.losses == ()


def test_what_stands_behind_the_events_is_the_headers_too(path):
    found = opened(written(path, json.dumps({"traceEvents": [kernel(1)], "deviceProperties": [{"id": 3}]})))
    list(found.events)

    assert found.header["deviceProperties"] == [{"id": 3}]


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 60), st.integers(20, 400), st.booleans(), st.booleans())
def test_packed_or_not_an_array_or_an_object_all_records_are_there(tmp_path_factory, n, block_bytes, packed, array):
    path = tmp_path_factory.getbasetemp() / "drawn.json"
    events = [kernel(k) for k in range(n)]
    text = json.dumps(events if array else {"traceEvents": events}).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacking, "BLOCK_BYTES", block_bytes)
        assert names(path) == [f"k{k}" for k in range(n)]


def test_brackets_in_a_log_behind_the_events_are_not_the_lists_end(path):
    log = [f"INFO [{k}] x[0], [1]" for k in range(300)]
    found = opened(written(path, json.dumps({"traceEvents": [kernel(1), kernel(2)], "log": log, "traceName": "x"})))

    assert len(list(found.events)) == 2
    assert (found.header["log"], found.losses) == (log, ())


def test_a_record_is_the_same_from_a_file_and_loaded(path):
    item = kernel(1, args={"stream": 7, "registers per thread": 32, "grid": [1, 2, 3], "odd": 1}, id=4, s="t")
    (read,) = opened(written(path, json.dumps([item]))).events
    loaded = record_of(item)

    assert read == loaded


def test_a_record_without_end_is_refused_before_it_fills_the_memory(path, monkeypatch):
    monkeypatch.setattr(unpacking, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(opening, "LONGEST_RECORD_BYTES", 5000)
    written(path, '{"traceEvents": [' + '{"a": 1 ' * 2000)

    with pytest.raises(TimelineError, match="no two records in"):
        list(opened(path).events)


def test_what_unpacks_to_more_than_the_limit_is_refused(path, monkeypatch):
    monkeypatch.setattr(unpacking, "LARGEST_BYTES", 10_000)
    written(path, gzip.compress(json.dumps([kernel(k) for k in range(1000)]).encode()))

    with pytest.raises(TimelineError, match="more than 10,000 bytes"):
        list(opened(path).events)


def test_several_gzip_members_are_one_file(path):
    text = json.dumps([kernel(k) for k in range(10)]).encode()
    written(path, gzip.compress(text[:100]) + gzip.compress(text[100:]))

    assert names(path) == [f"k{k}" for k in range(10)]


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_of_a_file_that_ends_in_the_middle_the_whole_records_are_read(path, packed):
    text = json.dumps({"traceEvents": [kernel(k) for k in range(10)]}, indent=1)
    cut = text[: text.index('"k7"')].encode()
    found = opened(written(path, gzip.compress(cut) if packed else cut))

    assert [record.name for record in found.events] == [f"k{k}" for k in range(7)]
    assert found.losses == ("the file ends in the middle; what comes after is lost",)


def test_a_gzip_stream_that_ends_in_the_middle_gives_what_it_holds(path):
    dice = random.Random(0)
    text = json.dumps([kernel(k, args={"stream": dice.random()}) for k in range(2000)]).encode()
    packed = gzip.compress(text)
    found = opened(written(path, packed[: len(packed) // 2]))
    n = sum(1 for _ in found.events)

    assert 800 < n < 1200
    assert found.losses == ("the gzip file ends in the middle; what comes after is lost",)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        pytest.param('"name": "C:\\Users\\me\\train.py"', "C:\\Users\\me\\train.py", id="backslashes"),
        pytest.param('"name": "a "quoted" word"', 'a "quoted" word', id="quotes in quotes"),
        pytest.param('"name": "k5", "x": N/A', "k5", id="bare N/A"),
        pytest.param('"name": "k5", "x": -Infinity', "k5", id="infinity"),
        pytest.param('"name": "k\x01", "x": 1', "k\x01", id="control character"),
        pytest.param('"name": "ends in \\"', "ends in \\", id="a backslash before the last quote"),
    ],
)
def test_a_record_that_is_no_json_is_mended_and_its_neighbours_stay(path, wrong, name):
    text = json.dumps({"traceEvents": [kernel(k) for k in range(9)]})
    written(path, text.replace('"name": "k5"', wrong))

    assert names(path) == ["k0", "k1", "k2", "k3", "k4", name, "k6", "k7", "k8"]


def test_mended_records_are_counted(path):
    text = json.dumps([kernel(k) for k in range(9)]).replace('"k5"', "N/A").replace('"k6"', "N/A")
    found = opened(written(path, text))
    list(found.events)

    assert found.losses == ("records that were no JSON (quotes, backslashes or bare words) mended: 2",)


def test_a_record_that_cannot_be_read_is_left_out_and_counted(path):
    text = json.dumps([kernel(k) for k in range(9)]).replace('"name": "k5"', '"name" = k5')
    found = opened(written(path, text))

    assert len(list(found.events)) == 8
    assert found.losses == ("records that can't be read left out: 1",)


def test_letters_that_are_not_utf_8_are_replaced_and_counted(path):
    text = json.dumps([kernel(k) for k in range(3)]).encode().replace(b"k1", b"k\xff")
    found = opened(written(path, text))

    assert [item["name"] for item in found.events] == ["k0", "k\N{REPLACEMENT CHARACTER}", "k2"]
    assert found.losses == ("letters that were not UTF-8 show as \N{REPLACEMENT CHARACTER}: 1",)


@pytest.mark.parametrize("odd", [17, "x", None, [1, 2], {"args": [1]}, {"args": "x"}, {"name": 3, "ts": {}}])
def test_a_record_of_an_odd_shape_changes_no_other(path, odd):
    found = list(opened(written(path, json.dumps([kernel(0), odd, kernel(2)]))).events)

    assert len(found) == 3


def test_blocks_are_of_the_size_that_was_said(path):
    written(path, gzip.compress(b"x" * 50 * 1024**2))

    assert max(map(len, blocks_of(path, []))) <= unpacking.BLOCK_BYTES


def test_times_are_kept_as_they_are_written(path):
    (record,) = opened(written(path, '[{"ph": "X", "ts": 1712195495505543.201, "dur": "1.5"}]')).events

    assert (record.ts, record.dur) == ("1712195495505543.201", "1.5")


def test_a_garbled_file_is_not_put_together_again_and_again(monkeypatch):
    tried = []
    monkeypatch.setattr(mending, "_read", lambda text, _: tried.append(text))
    n = 3 * mending.MOST_PUT_TOGETHER
    found = Counter()

    mending.one_by_one(",".join(["{garbled}"] * n), found)

    assert found[mending.LOST] == n
    assert len(tried) == mending.MOST_PUT_TOGETHER * mending.MOST_PARTS + n - mending.MOST_PUT_TOGETHER
