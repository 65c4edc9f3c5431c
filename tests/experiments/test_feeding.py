"""Lesson 6's experiment at a tiny size: real files, real workers, and what is told apart. No times are stated."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import replace

import pytest
import torch
from PIL import Image

from gpututor.cards import machine
from gpututor.errors import ExperimentError
from gpututor.experiments import feeding, feeding_here
from gpututor.experiments.fed import Fed
from gpututor.experiments.feeds import Feed, enough_workers, law_ns, others, sweep
from gpututor.jobs.photographs import HEIGHT_PX, IN_TRAINING_PROCESS, WIDTH_PX, Photographs, write_photographs
from gpututor.ledger import Account
from gpututor.model.uncollected import uncollected
from gpututor.progress import Progress, Stopped
from gpututor.replay import play_file

BATCH = 4
NONE = Feed("none", "no workers", 0, 4, BATCH, 1)
TWO = Feed("two", "2 workers", 2, 6, BATCH, 2, n_calm=2)
FEW = Feed("few", "1 batch", 3, 1, BATCH, ends=True)
ANEW = Feed("anew", "anew", 1, 2, BATCH, n_epochs=2, ends=True)
STAY = replace(ANEW, key="stay", persistent=True)
FEEDS = (NONE, TWO, FEW, ANEW, STAY)


@pytest.fixture(autouse=True)
def _own_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path))


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A run of all feeds: its data, its folder, the batches it reported."""
    folder, ticks = tmp_path_factory.mktemp("ran"), []
    # a collection among all objects of a test run takes longer than a step here, and would be host work like any other
    with pytest.MonkeyPatch.context() as patch, uncollected():
        patch.setenv("GPUTUTOR_LOCK_DIR", str(folder))
        told = Progress(lambda k, n, *_: ticks.append((k, n)), results_dir=folder)
        data = feeding.run(told, feeds=FEEDS, n_files=4, n_learned=3)
    return data, folder, ticks


@pytest.fixture(scope="module")
def points(ran):
    return {point["key"]: point for point in ran[0]["points"]}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return write_photographs(tmp_path_factory.mktemp("pictures"), 4)


# --- files and decoding ---------------------------------------------------------------------------------------------


def test_the_files_are_jpegs_of_the_size_stated(pictures):
    with Image.open(pictures[0]) as file:
        assert (file.format, file.size) == ("JPEG", (WIDTH_PX, HEIGHT_PX))


def test_one_picture_is_bytes_kind_and_reader(pictures):
    pixels, kind, by = Photographs(pictures, 8, side_px=32)[5]

    assert (tuple(pixels.shape), str(pixels.dtype)) == ((3, 32, 32), "torch.uint8")
    assert (kind, by) == (1, IN_TRAINING_PROCESS)


def test_whoever_reads_a_picture_gets_the_same(pictures):
    one, other = (Photographs(pictures, 8, side_px=32)[3][0] for _ in range(2))

    assert (one == other).all()


def test_the_same_file_is_cut_differently_for_another_number(pictures):
    held = Photographs(pictures, 8, side_px=32)

    assert (held[1][0] != held[5][0]).any()


# --- the run --------------------------------------------------------------------------------------------------------


def test_every_way_of_feeding_is_a_point(points):
    assert list(points) == [feed.key for feed in FEEDS]


def test_every_batch_is_reported(ran):
    n_all = sum(feed.n_steps for feed in FEEDS) + 2 * 3

    assert ran[2] == [(k, n_all) for k in range(n_all + 1)]


@pytest.mark.parametrize(("key", "n_steps"), [("none", 3), ("two", 2), ("few", 1), ("anew", 2)])
def test_the_tape_has_the_kept_steady_steps_of_the_first_epoch(ran, key, n_steps):
    data, folder, _ = ran
    played = play_file(folder / data["tapes"][key], machine(data["machine"]))

    assert played.ledger.n_steps == n_steps


@pytest.mark.parametrize("key", ["none", "two"])
def test_the_step_told_is_the_step_on_the_tape(ran, points, key):
    data, folder, _ = ran
    played = play_file(folder / data["tapes"][key], machine(data["machine"]))

    assert played.step_ns == pytest.approx(points[key]["step_ns"], rel=0.02)


def test_waiting_for_input_is_on_the_ledger(ran, points):
    data, folder, _ = ran
    ledger = play_file(folder / data["tapes"]["none"], machine(data["machine"])).ledger
    told_share = points["none"]["wait_ns"] / points["none"]["step_ns"]

    assert ledger.share(Account.WAITING_FOR_INPUT) == pytest.approx(told_share, abs=0.1)


def test_without_workers_the_training_process_reads(points):
    assert points["none"]["who"] == [IN_TRAINING_PROCESS]


def test_two_workers_share_the_batches(points):
    assert points["two"]["who"] == [0, 1]


def test_one_batch_is_made_by_one_worker_of_three(points):
    assert (points["few"]["n_workers"], points["few"]["who"]) == (3, [0])


def test_the_start_of_workers_is_told_for_each_epoch(points):
    assert [len(points[key]["first_ns"]) for key in ("anew", "stay")] == [2, 2]


def test_cores_are_told_beside(points):
    assert points["two"]["cpu_cores"] > 0
    assert points["two"]["n_threads"] >= 2


def test_the_number_of_workers_does_not_change_what_is_learned(ran):
    alone, with_two = (each["losses"] for each in ran[0]["learned"])

    assert alone == with_two
    assert len(set(alone)) == 3


def test_a_dataset_in_memory_is_sent_whole(ran):
    assert ran[0]["pickled"]["pictures"][0] > 1000 * ran[0]["pickled"]["paths"][0]


def test_no_worker_and_no_picture_is_left(ran):
    assert multiprocessing.active_children() == []
    assert list(ran[1].glob("**/*.jpg")) == []


def test_of_the_steady_steps_a_calm_stretch_is_kept():
    fed = Fed(step_ns=[3, 9, 3, 3, 3, 3])

    assert feeding.calm_steps(fed, 3) == slice(2, 5)  # the ones before have the step of 9 in them
    assert feeding.calm_steps(fed, None) == slice(0, 6)


# --- the law: a loader that only sleeps, so that no core is fought for -----------------------------------------------


@pytest.fixture(scope="module")
def slept(tmp_path_factory):
    """What is told when a batch of 8 keeps a worker for 80 ms (V100) or 8 ms (K80), by machine and workers."""
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("workers that aren't forked don't know this test's dataset")

    pace_s = {"now": 0.0}

    def wait(self, k):
        time.sleep(pace_s["now"])
        return torch.zeros(3, self.side_px, self.side_px, dtype=torch.uint8), k % 4, IN_TRAINING_PROCESS

    feeds = [Feed(f"{n}", f"{n} workers", n, 12, 8, 4) for n in (0, 1, 2)]
    folder, seen = tmp_path_factory.mktemp("slept"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUTUTOR_LOCK_DIR", str(folder))
        patch.setattr(Photographs, "__getitem__", wait)
        for name, pace_s["now"], some in (("p3.2xlarge", 0.01, feeds), ("p2.xlarge", 0.001, feeds[1:2])):
            data = feeding.run(Progress(results_dir=folder), machine=name, feeds=some, n_files=1, n_learned=0)
            seen[name] = {point["key"]: point for point in data["points"]}
    return seen


def test_without_workers_the_card_waits_for_all_of_the_loading(slept):
    assert slept["p3.2xlarge"]["0"]["wait_ns"] >= 80e6


def test_with_one_worker_no_step_is_shorter_than_its_loading(slept):
    assert slept["p3.2xlarge"]["1"]["step_ns"] > 0.95 * 80e6  # much more only where the cores are crowded


def test_two_workers_shorten_a_step_that_waits_for_loading(slept):
    assert slept["p3.2xlarge"]["2"]["step_ns"] < 0.85 * slept["p3.2xlarge"]["1"]["step_ns"]


def test_a_slow_card_is_fed_by_one_worker(slept):
    slow = slept["p2.xlarge"]["1"]  # a K80 takes some 35 ms for the batch

    assert slow["wait_ns"] < 0.5 * slow["step_ns"]


# --- stop -----------------------------------------------------------------------------------------------------------


def stopped_after(k_last, folder):
    seen = [0]
    return Progress(lambda k, *_: seen.append(k), lambda: seen[-1] >= k_last, folder)


def test_stopped_in_the_second_way_it_hands_back_the_first(tmp_path):
    data = feeding.run(stopped_after(NONE.n_steps + 1, tmp_path), feeds=(NONE, TWO), n_files=2, n_learned=0)

    assert [point["key"] for point in data["points"]] == ["none"]
    assert multiprocessing.active_children() == []


def test_stopped_in_the_first_way_it_hands_back_nothing_and_ends_its_workers(tmp_path):
    with pytest.raises(Stopped):
        feeding.run(stopped_after(2, tmp_path), feeds=(STAY,), n_files=2, n_learned=0)

    assert multiprocessing.active_children() == []


def test_too_little_shared_memory_is_said_before_a_worker_dies(tmp_path):
    huge = replace(TWO, batch=2**30)

    assert "needs" in feeding.too_little_shared_memory(huge, 150_528, tmp_path)
    assert feeding.too_little_shared_memory(replace(huge, n_workers=0), 150_528, tmp_path) is None


# --- on the reader's own processor -----------------------------------------------------------------------------------


def test_on_a_processor_the_same_ways_are_timed(tmp_path):
    data = feeding_here.measure(Progress(results_dir=tmp_path), device="cpu", feeds=(NONE, TWO), n_files=2)
    seen = {point["key"]: point for point in data["points"]}

    assert (data["device"], data["gpu"], list(seen)) == ("cpu", None, ["none", "two"])
    assert all(point["step_ns"] > 0 for point in seen.values())


def test_a_gpu_that_is_not_there_is_one_sentence(tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ExperimentError):
        feeding_here.measure(Progress(results_dir=tmp_path), feeds=(NONE,))


# --- what is compared -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_cores", [1, 2, 16])
def test_the_sweep_goes_from_none_to_four_at_least(n_cores):
    assert [feed.n_workers for feed in sweep(n_cores)][:4] == [0, 1, 2, 4]


def test_with_more_cores_there_are_more_workers():
    assert max(feed.n_workers for feed in sweep(16)) > 4


@pytest.mark.parametrize("n_cores", [1, 2, 16])
def test_few_and_many_batches_are_the_same_pictures(n_cores):
    feeds = {feed.key: feed for feed in others(n_cores)}

    assert feeds["few-0"].n_pictures == feeds["few-1"].n_pictures
    assert feeds["few-1"].n_batches < feeds["few-1"].n_workers


def test_the_law_bends_where_load_shared_is_compute():
    assert [law_ns(60, 20, n) for n in (0, 1, 2, 3, 6)] == [80, 60, 30, 20, 20]
    assert enough_workers(60, 20) == 3
