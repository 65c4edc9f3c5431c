"""The wire between page and worker."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.lab.protocol import (
    MAX_MESSAGE_BYTES,
    Ended,
    NotData,
    Run,
    Started,
    Stop,
    Ticked,
    Wire,
    WireClosed,
    WireError,
    decode,
    encode,
    to_json,
)

data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(), parts, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def wires():
    ends = [Wire(end) for end in socket.socketpair()]
    yield ends
    for wire in ends:
        wire.close()


@given(data, st.text())
def test_decode_undoes_encode(value, text):
    message = Ended("j", "done", value, text, "")

    assert decode(encode(message)) == message


@given(data, st.text())
def test_a_message_is_one_line(value, text):
    assert encode(Ticked("j", 1, 2, text, value)).count(b"\n") == 1


@pytest.mark.parametrize(
    "message",
    [Run("j", "a.b:c", {"n": 1}, None, 0, 60.0), Stop("j"), Started("j"), Ticked("j", 1, 2, "", None)],
    ids=lambda message: type(message).__name__,
)
def test_every_kind_survives_the_wire(wires, message):
    wires[0].send(message)

    assert wires[1].receive(1) == message


def test_messages_arrive_in_order(wires):
    for k in range(5):
        wires[0].send(Ticked("j", k, 5, "", None))

    assert [wires[1].receive(1).k for _ in range(5)] == [0, 1, 2, 3, 4]


def test_nothing_to_receive_is_none(wires):
    assert wires[1].receive(0.01) is None


def test_half_a_message_is_none_yet(wires):
    wires[0]._end.sendall(b'{"v":1,')

    assert wires[1].receive(0.01) is None


def test_a_hung_up_wire_says_so(wires):
    wires[0].close()

    with pytest.raises(WireClosed):
        wires[1].receive(1)


def test_sending_to_nobody_says_so(wires):
    wires[1].close()

    with pytest.raises(WireClosed):
        wires[0].send(Stop("j"))


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[]",
        b"{}",
        b'{"v":2,"kind":"Stop","job":"j"}',
        b'{"v":1,"kind":"Wire","job":"j"}',
        b'{"v":1,"kind":"Stop"}',
        b'{"v":1,"kind":"Stop","job":"j","more":1}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_message_is_refused(line):
    with pytest.raises(WireError):
        decode(line)


def test_a_message_beyond_the_limit_is_not_sent(wires):
    with pytest.raises(NotData, match="17 MiB, and 16 MiB is the most"):
        wires[0].send(Ticked("j", 0, 0, "x" * 17 * 2**20, None))


def test_a_line_without_an_end_is_refused(wires):
    def flood():
        with suppress(OSError):  # the other end hangs up
            wires[0]._end.sendall(b"x" * (MAX_MESSAGE_BYTES + 2**20))

    threading.Thread(target=flood, daemon=True).start()

    with pytest.raises(WireError, match="without an end"):
        wires[1].receive(10)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({1, 2}, "it is a set"),
        ({"a": [0, b"x"]}, r"\['a'\]\[1\] is a bytes"),
        ({"a": {(1, 2): 3}}, r"a key of \['a'\] is a tuple"),
        ([print], "builtin_function"),
    ],
)
def test_what_is_no_data_is_named_by_its_place(value, fault):
    with pytest.raises(NotData, match=fault):
        to_json(value)


def test_a_value_that_holds_itself_is_no_data():
    ring = []
    ring.append(ring)

    with pytest.raises(NotData, match="Circular"):
        to_json(ring)
