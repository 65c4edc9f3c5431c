"""Lesson 1's experiment: which kernels it launches, and what it hands back when it is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpututor.cards import machine
from gpututor.errors import ExperimentError
from gpututor.experiments.gauge import ADD, FP16, FP32, SOFTMAX, WORKLOADS, run
from gpututor.model.kernels import Gemm, RowReduce, Stream
from gpututor.one_kernel import first_kernel
from gpututor.progress import Progress, Stopped
from gpututor.replay import play_file, read_tape

NAMES = [each.name for each in WORKLOADS]
THINNED = 20
COUNTS = {each.name: -(-each.n_launches // THINNED) for each in WORKLOADS}


def stopped_after(n_kernels: int, folder: Path) -> Progress:
    """A reader who presses Stop once so many kernels were reported."""
    seen = []
    return Progress(lambda k, *_: seen.append(k), lambda: seen[-1] >= n_kernels, folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory):
    """A run with few launches: its data, its folder, what it reported."""
    folder, told = tmp_path_factory.mktemp("whole"), []
    data = run(Progress(lambda *tick: told.append(tick), results_dir=folder), thinned=THINNED)
    return data, folder, told


@pytest.fixture(scope="module")
def full_length(tmp_path_factory: pytest.TempPathFactory):
    """The run of the lesson itself, played on its machine."""
    folder = tmp_path_factory.mktemp("full")
    tapes = run(Progress(results_dir=folder))["tapes"]
    return {name: play_file(folder / file, machine("p3.2xlarge")) for name, file in tapes.items()}


def test_the_four_workloads_come_in_order(whole):
    assert list(whole[0]["tapes"]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_launch_is_one_kernel_on_the_tape(whole, name):
    data, folder, _ = whole
    played = play_file(folder / data["tapes"][name], machine("p3.2xlarge"))

    assert (played.ledger.n_kernels, played.ledger.n_steps) == (COUNTS[name], COUNTS[name])


def test_every_kernel_is_reported(whole):
    assert [k for k, *_ in whole[2]] == list(range(1, sum(COUNTS.values()) + 1))


def test_the_first_workload_is_one_row_in_one_block(whole):
    spec = first_kernel(read_tape(whole[1] / whole[0]["tapes"][SOFTMAX]))

    assert isinstance(spec, RowReduce)
    assert (spec.n_rows, spec.row_length, spec.split) == (1, 2**20, False)


def test_the_addition_reads_two_arrays_and_writes_one(whole):
    spec = first_kernel(read_tape(whole[1] / whole[0]["tapes"][ADD]))

    assert isinstance(spec, Stream)
    assert spec.moved_bytes == 3 * 4 * 2**26


@pytest.mark.parametrize(("name", "number_format"), [(FP32, "fp32"), (FP16, "fp16")])
def test_the_products_are_of_square_matrices_in_their_format(whole, name, number_format):
    spec = first_kernel(read_tape(whole[1] / whole[0]["tapes"][name]))

    assert isinstance(spec, Gemm)
    assert (spec.m, spec.n, spec.k, spec.number_format) == (8192, 8192, 8192, number_format)


@pytest.mark.parametrize("name", NAMES)
def test_each_keeps_a_v100_at_work_for_a_sample_of_nvidia_smi(full_length, name):
    # between a sixth of a second and a second, with room for one kernel more
    assert 1 / 6 <= full_length[name].ledger.window_ns / 1e9 <= 1.1


@pytest.mark.parametrize("name", NAMES)
def test_nvidia_smi_would_show_each_as_busy_all_the_time(full_length, name):
    assert round(100 * full_length[name].ledger.gpu_util_share) == 100


def test_stopped_in_the_third_it_hands_back_the_two_before(tmp_path):
    data = run(stopped_after(COUNTS[SOFTMAX] + COUNTS[ADD] + 1, tmp_path), thinned=THINNED)

    assert list(data["tapes"]) == NAMES[:2]
    assert all((tmp_path / file).is_file() for file in data["tapes"].values())


def test_stopped_in_the_first_it_hands_back_nothing(tmp_path):
    progress = stopped_after(1, tmp_path)

    with pytest.raises(Stopped):
        run(progress, thinned=THINNED)

    assert progress.partial is None


def test_after_a_stop_the_simulated_card_is_free_again(tmp_path):
    with pytest.raises(Stopped):
        run(stopped_after(1, tmp_path), thinned=THINNED)

    assert list(run(Progress(results_dir=tmp_path), thinned=1000)["tapes"]) == NAMES


@pytest.mark.parametrize("thinned", [0, -1])
def test_a_divisor_below_one_is_refused(tmp_path, thinned):
    with pytest.raises(ExperimentError, match="a number of 1 or more"):
        run(Progress(results_dir=tmp_path), thinned=thinned)
