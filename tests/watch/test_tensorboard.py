"""Event files: by published checksums, by a decoder written against the format, and by TensorBoard's own reader."""

from __future__ import annotations

import struct

import pytest

from gpututor.errors import WatchNotKept
from gpututor.event_file import crc32c, event, masked, record
from gpututor.watch.tensorboard import Events
from tests.watch.made import gpu, reading


# RFC 3720, appendix B.4: 32 bytes of zeros, of ones, ascending and descending.
@pytest.mark.parametrize(
    ("data", "crc"),
    [
        pytest.param(bytes(32), 0x8A9136AA, id="zeros"),
        pytest.param(b"\xff" * 32, 0x62A8AB43, id="ones"),
        pytest.param(bytes(range(32)), 0x46DD794E, id="ascending"),
        pytest.param(bytes(range(31, -1, -1)), 0x113FDB5C, id="descending"),
        pytest.param(b"", 0, id="nothing"),
    ],
)
def test_checksums_are_those_of_the_rfc(data, crc):
    assert crc32c(data) == crc


def test_a_masked_checksum_can_be_unmasked():
    crc = crc32c(b"a record")
    turned = (masked(crc) - 0xA282EAD8) & 0xFFFFFFFF

    assert (turned >> 17 | turned << 15) & 0xFFFFFFFF == crc


# --- an independent decoder ---


def records(data):
    """The messages of a file; both checksums of each are looked at bit by bit, not by a table."""
    while data:
        (length,) = struct.unpack_from("<Q", data)
        (length_sum,) = struct.unpack_from("<I", data, 8)
        message = data[12 : 12 + length]
        (message_sum,) = struct.unpack_from("<I", data, 12 + length)
        assert length_sum == slow_masked(data[:8])
        assert message_sum == slow_masked(message)
        yield message
        data = data[16 + length :]


def slow_masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32


def fields(message):
    """(number, value) of a protocol buffer: whole numbers, 4 and 8 bytes, and bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        n = {0: 0, 1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        n = varint() if n is None else n
        yield key >> 3, message[at : at + n]
        at += n


def scalars_of(message):
    """Wall time, step, and values by tag."""
    found = dict(fields(message))
    values = {}
    for number, content in fields(found[5]):
        assert number == 1
        value = dict(fields(content))
        values[value[1].decode()] = struct.unpack("<f", value[2])[0]
    return struct.unpack("<d", found[1])[0], found[2], values


@pytest.fixture
def written(tmp_path):
    """Write these readings; gives the folder and the file's bytes."""

    def _written(*readings):
        log = Events(tmp_path / "events", now_s=1000.0)
        for one in readings:
            log.note(one)
        log.close()
        return tmp_path / "events", log.path.read_bytes()

    return _written


def test_the_file_begins_with_its_version(written):
    _, data = written()
    (first,) = records(data)

    assert dict(fields(first))[3] == b"brain.Event:2"


def test_each_tick_is_one_event_with_its_time_and_step(written):
    _, data = written(reading(gpu(0.25), time_s=1000.5), reading(gpu(0.5), time_s=1001.5))
    events = [scalars_of(message) for message in list(records(data))[1:]]

    assert [(time_s, step) for time_s, step, _ in events] == [(1000.5, 0), (1001.5, 1)]
    assert [values["gpu0/kernel_time_share"] for *_, values in events] == [0.25, 0.5]


def test_what_was_not_read_has_no_point(written):
    _, data = written(reading(gpu(None)))
    *_, values = scalars_of(list(records(data))[1])

    assert "gpu0/kernel_time_share" not in values
    assert values["gpu0/power_w"] == 120.0


@pytest.mark.parametrize("step", [0, 127, 128, 16_384, 2**40])
def test_steps_of_any_size_are_read_back(step):
    assert scalars_of(event(1.0, step, {"a": 1.0}))[1] == step


def test_a_long_message_keeps_its_length():
    values = {f"gpu{k}/kernel_time_share": k / 64 for k in range(64)}
    (message,) = records(record(event(1.0, 1, values)))

    assert scalars_of(message)[2] == values


def test_an_event_is_on_disk_before_the_next_tick(tmp_path):
    log = Events(tmp_path)
    log.note(reading(gpu()))

    assert len(list(records(log.path.read_bytes()))) == 2
    log.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(WatchNotKept, match="takes no event file"):
        Events(tmp_path / "file" / "events")


def test_tensorboard_reads_the_file(written):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
    )
    folder, _ = written(*(reading(gpu(k / 4), time_s=1000.0 + k) for k in range(5)))
    found = accumulator.EventAccumulator(str(folder))
    found.Reload()

    points = found.Scalars("gpu0/kernel_time_share")
    assert [(p.wall_time, p.step, p.value) for p in points] == [(1000.0 + k, k, k / 4) for k in range(5)]
