from __future__ import annotations

import csv
import json

import pytest

from gpututor.errors import WatchNotKept
from gpututor.measure.nvml import clock_reasons
from gpututor.watch.files import CsvRows, JsonLines, scalars
from tests.watch.made import GIB, gpu, reading, simulated


@pytest.fixture
def rows(tmp_path):
    """Write these readings; gives the rows as dictionaries, and the log."""

    def _rows(*readings):
        log = CsvRows(tmp_path / "watch.csv")
        for one in readings:
            log.note(one)
        log.close()
        with (tmp_path / "watch.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file)), log

    return _rows


def test_each_tick_is_one_row_under_one_header(rows):
    found, _ = rows(reading(gpu(0.25), time_s=1000.0), reading(gpu(0.5), time_s=1001.0))

    assert [row["time_s"] for row in found] == ["1000.000", "1001.000"]
    assert [row["gpu0_kernel_time_share"] for row in found] == ["0.25", "0.5"]
    assert found[0]["utc"] == "1970-01-01T00:16:40.000+00:00"


def test_what_was_not_read_is_an_empty_cell_and_never_zero(rows):
    (row,), _ = rows(reading(gpu(None, power_w=None, clock_reasons=None)))

    assert (row["gpu0_kernel_time_share"], row["gpu0_power_w"], row["gpu0_clock_reasons"]) == ("", "", "")


def test_free_clocks_are_told_from_clocks_that_were_not_read(rows):
    found, _ = rows(*(reading(gpu(clock_reasons=clock_reasons(mask))) for mask in (0, 0x44)))

    assert [row["gpu0_clock_reasons"] for row in found] == ["nothing", "power limit; too hot (card)"]


def test_a_simulated_gpu_that_comes_later_has_columns(rows):
    found, log = rows(reading(gpu()), reading(gpu(), simulated(0.4)))

    assert [row["sim0_kernel_time_share"] for row in found] == ["", "0.4"]
    assert not log.without_column


def test_another_gpu_that_comes_later_is_remembered(rows):
    _, log = rows(reading(gpu()), reading(gpu(), gpu(key="gpu1")))

    assert log.without_column == {"gpu1"}


def test_every_number_says_its_unit(rows):
    (row,), _ = rows(reading(gpu()))
    numbers = [name for name in row if name.rpartition("_")[2] not in {"name", "utc", "reasons"}]

    assert {name.rpartition("_")[2] for name in numbers} == {"s", "share", "cores", "bytes", "w", "hz", "c"}


def test_a_row_is_on_disk_before_the_next_tick(tmp_path):
    log = CsvRows(tmp_path / "a.csv")
    log.note(reading(gpu()))

    assert (tmp_path / "a.csv").read_text().count("\n") == 2
    log.close()


def test_a_former_watch_is_not_overwritten(tmp_path):
    (tmp_path / "a.csv").write_text("yesterday's")

    with pytest.raises(WatchNotKept, match="holds something already"):
        CsvRows(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "yesterday's"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(WatchNotKept, match="No such file"):
        JsonLines(tmp_path / "nowhere" / "a.jsonl")


def test_a_json_line_holds_the_reason_for_each_missing_value(tmp_path):
    log = JsonLines(tmp_path / "a.jsonl")
    log.note(reading(simulated()))
    log.close()
    told = json.loads((tmp_path / "a.jsonl").read_text())

    assert told["devices"][0]["power_w"] is None
    assert told["devices"][0]["reasons"]["power_w"] == "power is not simulated"


def test_scalars_are_named_by_part_and_quantity():
    found = scalars(reading(gpu(0.25)))

    assert (found["gpu0/kernel_time_share"], found["gpu0/memory_used_bytes"]) == (0.25, 4 * GIB)
    assert found["cpu/memory_used_bytes"] is None
