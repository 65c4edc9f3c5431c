"""Lesson 8's experiment: that all prepare the same batches, what crosses the link, and what hides a copy."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from gpututor.errors import MachineBusy
from gpututor.experiments import calm, preparing, sweeps
from gpututor.jobs import pictures
from gpututor.ledger import Account
from gpututor.lookup import machine_named
from gpututor.model import tape_file
from gpututor.model.tape import BeginStep, CopyCall
from gpututor.progress import Progress
from gpututor.replay import play_file
from gpututor.simgpu import simulated_gpu
from gpututor.timeline import Activity

N_STEPS = 2
MACHINES = ("V100-SXM2-16GB", "T4", "A100-SXM4-80GB", "H100-SXM")
VALUES = preparing.BATCH * 3 * preparing.COPY_SIDE**2  # numbers in a batch that is copied
each_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short run, without the lock: nothing here rests on real time."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calm, "measuring", lambda what: nullcontext())
        patch.setattr(preparing, "N_PICTURES", 128)
        patch.setattr(preparing, "N_HELD_OUT", 16)
        return preparing.run(Progress(results_dir=folder), n_steps=N_STEPS), folder


@pytest.fixture(scope="module")
def played(run):
    data, folder = run

    def on(key, name):
        return play_file(folder / data["tapes"][key], machine_named(name))

    return on


def point(run, key):
    return next(each for each in run[0]["points"] if each["key"] == key)


def copied_bytes(run, key):
    data, folder = run
    entries = tape_file.load(folder / data["tapes"][key]).entries
    n_steps = sum(type(entry) is BeginStep for entry in entries)
    return sum(entry.n_bytes for entry in entries if type(entry) is CopyCall and entry.to_gpu) / n_steps


# --- who prepares -----------------------------------------------------------------------------------------------------


def test_every_variant_ran(run):
    assert [each["key"] for each in run[0]["points"]] == [*preparing.WHO, *preparing.COPIES]


@pytest.mark.parametrize("key", ["batch", "fp64", "card"])
def test_whoever_prepares_the_network_learns_the_same(run, key):
    assert point(run, key)["losses"] == pytest.approx(point(run, "one by one")["losses"], rel=1e-5)


def test_leaving_augmentation_out_learns_something_else(run):
    assert point(run, "nobody")["losses"] != pytest.approx(point(run, "card")["losses"], rel=1e-3)


@pytest.mark.parametrize("key", preparing.WHO)
def test_each_is_asked_about_pictures_it_never_saw(run, key):
    assert point(run, key)["held_out"] > 0


@pytest.mark.parametrize("key", ["one by one", "batch", "fp64"])
def test_the_card_waits_for_a_host_that_prepares(played, key):
    assert played(key, "V100-SXM2-16GB").ledger.share(Account.WAITING_FOR_INPUT) > 0.1


def test_what_the_card_does_to_prepare_is_kernels(played):
    own, given = (played(key, "V100-SXM2-16GB").ledger.n_kernels for key in ("card", "batch"))

    assert own > given


@pytest.mark.parametrize(("key", "bytes_a_value"), [("batch", 4), ("one by one", 4), ("fp64", 8)])
def test_a_prepared_batch_is_copied_in_its_number_format(run, key, bytes_a_value):
    labels = 8 * preparing.BATCH

    assert copied_bytes(run, key) == bytes_a_value * preparing.BATCH * 3 * pictures.SIDE**2 + labels


def test_the_card_gets_bytes_as_they_are_kept_and_the_windows(run):
    windows, labels = 4 * 6 * preparing.BATCH, 8 * preparing.BATCH

    assert copied_bytes(run, "card") == preparing.BATCH * 3 * pictures.STORED**2 + windows + labels


def test_a_run_that_is_stopped_hands_back_the_part_it_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(calm, "measuring", lambda what: nullcontext())
    monkeypatch.setattr(preparing, "N_PICTURES", 128)
    n_first = len(preparing.WHO) * N_STEPS
    seen = [0]
    progress = Progress(lambda k, *_: seen.append(k), lambda: seen[-1] > n_first, tmp_path)

    data = preparing.run(progress, n_steps=N_STEPS)

    assert [each["key"] for each in data["points"]] == list(preparing.WHO)


def test_on_a_processor_nothing_is_copied_so_only_the_preparing_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "measuring", lambda what: nullcontext())
    monkeypatch.setattr(preparing, "N_PICTURES", 128)

    data = preparing.measure(Progress(results_dir=tmp_path), device="cpu", n_steps=1)

    assert [each["key"] for each in data["points"]] == list(preparing.WHO)


def test_a_second_run_waits_for_its_turn(tmp_path, monkeypatch):
    def busy(what):
        raise MachineBusy("another measurement is running")

    monkeypatch.setattr(calm, "measuring", busy)

    with pytest.raises(MachineBusy):
        preparing.run(Progress(results_dir=tmp_path), n_steps=N_STEPS)


# --- how a batch crosses the link -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "bytes_a_value"),
    [("copy fp64", 8), ("copy", 4), ("pinned", 4), ("ahead", 4), ("bytes", 1), ("bytes ahead", 1)],
)
def test_a_batch_is_copied_in_its_number_format(run, key, bytes_a_value):
    assert copied_bytes(run, key) == bytes_a_value * VALUES


@each_machine
def test_asking_for_non_blocking_changes_nothing_where_memory_is_pageable(played, name):
    assert played("asked", name).step_ns == played("copy", name).step_ns


@each_machine
@pytest.mark.parametrize(
    ("faster", "slower"),
    [("copy", "copy fp64"), ("pinned", "copy"), ("free", "pinned"), ("ahead", "free"), ("bytes", "copy")],
)
def test_each_change_of_the_copy_shortens_the_step(played, name, faster, slower):
    assert played(faster, name).step_ns < played(slower, name).step_ns


@each_machine
def test_a_copy_ahead_takes_the_longer_of_copy_and_work(played, name):
    ahead, alone = played("ahead", name), played("copy", name)
    copy_ns = [
        sum(s.duration_ns for s in p.timeline.on(Activity.COPY_TO_GPU)) / p.ledger.n_steps for p in (ahead, alone)
    ]
    work_ns = alone.step_ns - copy_ns[1]

    assert ahead.step_ns == pytest.approx(max(copy_ns[0], work_ns), rel=0.12)


@each_machine
def test_a_copy_under_compute_is_hardly_charged(played, name):
    assert played("bytes ahead", name).ledger.share(Account.EXPOSED_COPY) < 0.1


def test_a_float64_batch_ahead_takes_what_exercise_8_1_says(tmp_path):
    step = preparing.Copied

    class Doubles(step):
        def __init__(self, device):
            super().__init__("copy fp64", device, preparing.BATCH, preparing.COPY_SIDE)
            self._ahead = preparing.Ahead([each.pin_memory() for each in self._ready], device)

    variant = sweeps.Variant("doubles", "float64 ahead", Doubles, n_samples=preparing.BATCH, numerics=False)
    data = sweeps.simulate(Progress(results_dir=tmp_path), [variant], what="float64 ahead", n_steps=8)
    link_ns = 8 * VALUES / 12.3e9 * 1e9  # pinned, on the default machine's link

    assert data["points"][0]["step_ns"] == pytest.approx(link_ns, rel=0.08)


# --- what others reported ---------------------------------------------------------------------------------------------


def test_streaming_weights_from_pageable_memory_takes_twice_as_long_or_more():
    # ostris/ai-toolkit#813: 20 s a step became 10 with pinned memory, weights partly on the host, RTX 5090
    def step_ns(pinned):
        with simulated_gpu("desktop-RTX-5090", numerics=False) as sim:
            layers = [torch.zeros(1024, 4096, dtype=torch.bfloat16) for _ in range(3)]
            layers = [layer.pin_memory() for layer in layers] if pinned else layers
            x = torch.zeros(64, 4096, dtype=torch.bfloat16, device="simgpu")
            before_ns = sim.host_ns
            for layer in layers * 8:
                x @ layer.to("simgpu", non_blocking=True).t()
            torch.simgpu.synchronize()
            return sim.host_ns - before_ns

    assert 1.5 < step_ns(pinned=False) / step_ns(pinned=True) < 5


@pytest.mark.parametrize(
    ("pinned", "non_blocking", "returns_at_once"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_only_a_pinned_copy_that_may_go_on_lets_the_host_go_on(pinned, non_blocking, returns_at_once):
    # pytorch/pytorch#48065: a long kernel, then a copy of 1,024 by 1,024 numbers, timed by the host
    with simulated_gpu("V100-SXM2-16GB", numerics=False) as sim:
        numbers = torch.zeros(1024, 1024)
        numbers = numbers.pin_memory() if pinned else numbers
        numbers.to("simgpu")  # the first one gets memory from the driver, which takes time of its own
        big = torch.zeros(8192, 8192, device="simgpu")
        big @ big
        before_ns = sim.host_ns
        numbers.to("simgpu", non_blocking=non_blocking)
        took_ns = sim.host_ns - before_ns

    assert (took_ns < 1e6) == returns_at_once  # the product takes some 80 ms


@each_machine
def test_a_mean_in_float64_makes_the_conversion_take_about_twice_as_long(played, name):
    # linkedin/Liger-Kernel#1358 and the thread before it: 1.9 times on an H100, more where float64 is slow
    spent = {
        key: sum(s.duration_ns for s in played(key, name).timeline.on(Activity.KERNEL))
        for key in ("ahead", "bytes ahead", "mean fp64")
    }

    assert 1.4 < (spent["mean fp64"] - spent["ahead"]) / (spent["bytes ahead"] - spent["ahead"]) < 3


def test_a_v100_is_hardly_busy_while_the_host_augments(played):
    # sthalles/SimCLR#15: 0 to 10 % on a V100
    assert played("one by one", "V100-SXM2-16GB").ledger.gpu_util_share < 0.2


def test_without_augmentation_the_card_is_busier(run, played):
    # pytorch/vision#483
    busy = {key: played(key, "V100-SXM2-16GB").ledger.gpu_util_share for key in ("one by one", "nobody")}

    assert busy["nobody"] > busy["one by one"]


# --- the job ----------------------------------------------------------------------------------------------------------


def test_one_picture_and_a_batch_are_prepared_alike():
    made, _ = pictures.coloured(4)
    windows = pictures.Draws.make(4, 4).windows
    one_by_one = torch.cat([pictures.seen_through(made[k : k + 1], windows[k : k + 1]) for k in range(4)])

    assert torch.equal(one_by_one, pictures.seen_through(made, windows))


def test_a_window_of_the_whole_picture_gives_it_back():
    made, _ = pictures.coloured(2, side=16)
    whole = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).repeat(2, 1, 1)

    assert torch.allclose(pictures.seen_through(made, whole, side=16), made / 255, atol=1e-5)


def test_a_negative_width_mirrors():
    made, _ = pictures.coloured(2, side=16)
    mirror = torch.tensor([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).repeat(2, 1, 1)

    assert torch.allclose(pictures.seen_through(made, mirror, side=16), made.flip(-1) / 255, atol=1e-5)


def test_a_loader_starts_over_at_its_end():
    made, kinds = pictures.coloured(4, side=16)
    draws = pictures.Draws.make(4, 4)
    batches = pictures.loaded(pictures.Ready(made.float(), kinds, draws, batch=2))
    first, _, third = (next(batches) for _ in range(3))

    assert torch.equal(first[0], third[0])


def test_preparing_leaves_the_number_of_threads_as_it_was():
    before = torch.get_num_threads()
    with pictures.one_thread():
        pass

    assert torch.get_num_threads() == before
