"""Energy from a watch's readings of power: counted by hand, None with a reason where power wasn't read."""

from __future__ import annotations

import pytest

from gpututor.watch.energy import energy_of
from gpututor.watch.files import JsonLines, readings_in
from tests.watch.made import cpu_of, gpu, reading, simulated


def watts(*powers, every_s=2.0):
    return [reading(gpu(power_w=w), time_s=1000.0 + k * every_s) for k, w in enumerate(powers)]


def test_energy_is_the_mean_power_of_each_stretch_times_its_length():
    assert energy_of(watts(100.0, 200.0, 200.0), "gpu0").energy_j == 150 * 2 + 200 * 2


def test_a_kilowatt_hour_costs_its_price():
    drawn = energy_of(watts(1000.0, 1000.0, every_s=3600.0), "gpu0")

    assert drawn.kwh == pytest.approx(1)
    assert drawn.usd(0.3) == pytest.approx(0.3)


def test_a_stretch_without_a_reading_is_watched_and_not_known():
    drawn = energy_of(watts(100.0, 100.0, None, 100.0, 100.0), "gpu0")

    assert (drawn.energy_j, drawn.known_s, drawn.watched_s) == (400.0, 4.0, 8.0)


def test_a_card_whose_power_is_not_read_has_no_energy_and_the_reading_says_why():
    drawn = energy_of([reading(simulated(), time_s=1.0), reading(simulated(), time_s=2.0)], "sim0")

    assert (drawn.energy_j, drawn.kwh, drawn.usd(0.3)) == (None, None, None)
    assert drawn.reason == "power is not simulated"


@pytest.mark.parametrize(
    ("readings", "key", "why"),
    [
        pytest.param([], "gpu0", "no GPU was read", id="nothing watched"),
        pytest.param(watts(100.0), "gpu7", "no GPU was read as gpu7", id="another card"),
        pytest.param(watts(100.0), "gpu0", "fewer than 2 times", id="one reading"),
    ],
)
def test_too_little_to_add_up_is_told(readings, key, why):
    drawn = energy_of(readings, key)

    assert drawn.energy_j is None
    assert why in drawn.reason


def test_what_was_kept_as_json_lines_is_read_back_as_it_was(tmp_path):
    kept = [
        reading(gpu(0.25), simulated(), time_s=1000.5, cpu=cpu_of(0.9, 0.4)),
        reading(no_gpu="no driver", time_s=1001.5),
    ]
    log = JsonLines(tmp_path / "watch.jsonl")
    for one in kept:
        log.note(one)
    log.close()

    assert list(readings_in(tmp_path / "watch.jsonl")) == kept


def test_a_line_that_was_cut_in_half_is_passed_over(tmp_path):
    log = JsonLines(tmp_path / "watch.jsonl")
    log.note(reading(gpu(0.25)))
    log.close()
    path = tmp_path / "watch.jsonl"
    path.write_text(path.read_text() + path.read_text()[:40])

    assert len(readings_in(path)) == 1
