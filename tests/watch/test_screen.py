from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from gpututor.watch.history import History
from gpututor.watch.plain import explained, tick_lines
from gpututor.watch.screen import BLOCKS, PLAIN_BLOCKS, blocks_for, fitting, missing, processes_line, sparkline, view
from gpututor.watch.source import GpuProcess
from tests.watch.made import BUSY_CPU, GIB, cpu_of, gpu, reading, simulated


def shown(*readings, width=100, **options):
    """What stands on a terminal of this width after these readings."""
    history, out = History(), io.StringIO()
    for one in readings:
        history.note(one)
    Console(file=out, width=width, force_terminal=False).print(view(readings[-1], history, width, **options))
    return out.getvalue().replace("\u00a0", " ")


FULL = reading(gpu(0.25), simulated(0.9), cpu=BUSY_CPU)


def test_a_gpu_is_shown_with_its_gauge_and_what_it_means():
    text = shown(reading(gpu(0.25), cpu=BUSY_CPU))

    assert "A kernel ran 25 % of the time; that says nothing of how full the card was." in text
    assert "Memory 4.0 of 16.0 GiB, power 120 of 300 W, 50 °C." in text
    assert "The SMs run at 1500 of at most 2000 MHz, and nothing holds them." in text
    assert "that means the loader" in text


def test_a_simulated_gpu_says_that_it_is():
    assert "sim0 simulated V100  train.py" in shown(reading(simulated()))


@pytest.mark.parametrize("width", [40, 60, 78, 200])
def test_no_line_is_wider_than_the_terminal(width):
    long_names = cpu_of(1.0, 0.9, 0.8)
    text = shown(
        *[reading(gpu(k / 300), simulated(), cpu=long_names, time_s=float(k)) for k in range(150)], width=width
    )

    assert max(map(len, text.splitlines())) <= width


def test_the_longest_number_leaves_room_for_the_line():
    readings = [reading(gpu(0.9995), time_s=float(k)) for k in range(150)]
    lines = shown(*readings, width=60).splitlines()

    assert lines[1].startswith("> 99.9 % ████")
    assert "A kernel ran > 99.9" in lines[2]


def test_a_narrow_terminal_gets_fewer_lines():
    assert "power is not simulated" in shown(FULL, width=80).lower()
    assert "power is not simulated" not in shown(FULL, width=60).lower()


def test_without_a_gpu_the_reason_and_the_cpu_are_shown():
    text = shown(reading(no_gpu="the driver is not loaded", cpu=BUSY_CPU))

    assert "No real GPU is visible: the driver is not loaded." in text
    assert "gpututor run --clock paced" in text.replace("\n", " ")
    assert "CPU 95 % of 8 cores busy" in text


def test_a_simulated_gpu_that_is_there_is_not_explained_once_more():
    assert "shows up here" not in shown(reading(simulated(), no_gpu="no driver"))


def test_a_gauge_that_is_unknown_is_a_question_mark_with_its_reason():
    text = shown(reading(gpu(None, reasons={"kernel_time_share": "Not Supported, code 3"})))

    assert "Utilization is not known: Not Supported, code 3." in text
    assert "0 %" not in text.partition("CPU")[0]


def test_the_page_is_named_where_there_is_one():
    assert "the page is at http://127.0.0.1:2780" in shown(FULL, page="http://127.0.0.1:2780")


def test_missing_readings_share_a_sentence_by_their_reason():
    device = gpu(power_w=None, temperature_c=None, memory_used_bytes=None,
                 reasons={"power_w": "a", "temperature_c": "a", "memory_used_bytes": "b"})  # fmt: skip

    assert list(missing(device)) == ["Not known: memory (b).", "Not known: power, temperature (a)."]


def test_processes_are_named_largest_first_and_the_rest_is_counted():
    found = [GpuProcess(k, f"job{k}", k * GIB) for k in range(1, 6)] + [GpuProcess(9, None, None)]

    assert processes_line(found).replace("\u00a0", " ") == (
        "job5 (5) 5.0 GiB, job4 (4) 4.0 GiB, job3 (3) 3.0 GiB, 3 more"
    )


def test_a_process_of_the_host_is_not_visible_from_a_container():
    assert processes_line([GpuProcess(9, None, None)]) == "not visible from here (9)"


def drawn(*devices, height, width=80):
    """What is drawn on a terminal of this height."""
    history, out, one = History(), io.StringIO(), reading(*devices, cpu=BUSY_CPU)
    history.note(one)
    console = Console(file=out, width=width, height=height, force_terminal=False)
    console.print(fitting(one, history, console))
    return out.getvalue().replace("\u00a0", " ")


def test_many_gpus_get_two_lines_each_and_every_verdict_once():
    eight = [gpu(0.9 if k == 3 else 0.1, key=f"gpu{k}") for k in range(8)]
    text = drawn(*eight, height=30)

    assert len(text.splitlines()) <= 30
    assert "gpu3     90 % ▇" in text
    assert text.count("that means the loader") == 1
    assert "gpu0, gpu1, gpu2, gpu4, gpu5, gpu6, gpu7: The CPU is busy" in text.replace("\n ", "")


def test_a_single_gpu_is_told_whole():
    assert "A kernel ran" in drawn(gpu(0.5), height=30)


# --- sparklines ---


def test_the_lowest_and_the_highest_block_mean_0_and_1():
    assert sparkline([0, 1], 9) == "▁█"


def test_what_was_not_read_is_a_dot():
    assert sparkline([None, 0], 9) == "·▁"


def test_more_shares_than_columns_are_averaged():
    assert sparkline([0, 1, 1, 1, 0, 0], 3) == "▅█▁"  # 0.5, 1, 0


def test_columns_keep_their_members_as_time_goes_on():
    shares = [0, 0, 1, 1, 0, 0, 1, 1]

    assert sparkline(shares, 4) == "▁█▁█"
    assert sparkline([*shares[1:], 0], 4, first=1) == "█▁█▁"


def test_a_line_is_never_longer_than_it_may_be():
    for n in range(40):
        for first in range(5):
            assert len(sparkline([0.5] * n, 7, first=first)) <= 7


def test_a_terminal_without_blocks_gets_letters():
    assert (blocks_for("utf-8"), blocks_for("ascii"), blocks_for("no-such-code")) == (
        BLOCKS,
        PLAIN_BLOCKS,
        PLAIN_BLOCKS,
    )


# --- plain lines ---


def test_the_first_look_is_explained():
    lines = [line.replace("\u00a0", " ") for line in explained(FULL)]

    assert lines[0] == "gpu0: Card"
    assert "  Memory 4.0 of 16.0 GiB, power 120 of 300 W, 50 °C." in lines
    assert "sim0: simulated V100 (train.py)" in lines


def test_later_looks_are_one_line_a_gpu():
    lines = [line.replace("\u00a0", " ") for line in tick_lines(FULL)]

    assert len(lines) == 2
    assert lines[0].endswith("gpu0 25 %  memory 4.0 of 16.0 GiB, power 120 of 300 W, 50 °C  CPU 95 %")


def test_without_a_gpu_a_line_has_the_cpu():
    (line,) = tick_lines(replace(FULL, devices=()))

    assert "no GPU  CPU" in line
