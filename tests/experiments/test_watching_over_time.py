"""Lesson 18's nights and what its run leaves: facts of the drawing, of the pricing, and of the files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpututor.errors import MachineBusy
from gpututor.experiments import watched_run
from gpututor.experiments.nights import (
    LASTING,
    N_NIGHTS,
    N_QUIET,
    Cause,
    Night,
    entry_of,
    episodes,
    has_all,
    ledger_of,
    machine_on,
    nights,
    with_input,
)
from gpututor.experiments.watching_over_time import _energy, _First, forms, measure, run
from gpututor.history import History
from gpututor.ledger import Account
from gpututor.lookup import machine_named
from gpututor.measure.nvml import Energy
from gpututor.model.tape_file import load
from gpututor.progress import Progress, Stopped
from gpututor.timeline import Activity
from gpututor.watch.files import readings_in

SEEDS = range(30)
SEED = 7


# --- what is drawn ---------------------------------------------------------------------------------------------------


def test_every_seed_plants_each_lasting_cause_once():
    assert all(sorted(LASTING, key=str) == sorted((e.cause for e in episodes(seed)), key=str) for seed in SEEDS)


def test_there_are_forty_nights_and_nothing_happens_in_the_first():
    for seed in SEEDS:
        told = nights(seed)
        assert [night.number for night in told] == list(range(1, N_NIGHTS + 1))
        assert {night.cause for night in told[:N_QUIET]} <= {None}


def test_two_nights_are_disturbed_by_chance_and_stand_alone():
    for seed in SEEDS:
        told = {night.number: night.cause for night in nights(seed)}
        odd = [number for number, cause in told.items() if cause is Cause.CHANCE]
        assert len(odd) == 2
        assert {told[n + d] for n in odd for d in (-1, 1)} == {None}


def test_neighbours_have_other_nights():
    orders = Counter(tuple(each.cause for each in episodes(seed)) for seed in range(200))

    assert max(orders.values()) < 10


def test_the_same_seed_gives_the_same_nights():
    nights.cache_clear()
    first = nights(SEED)
    nights.cache_clear()

    assert nights(SEED) == first


def test_the_loader_gets_slower_by_as_much_every_night():
    one = next(each for each in episodes(SEED) if each.cause is Cause.LOADER)
    times = [nights(SEED)[n - 1].input_times for n in one.numbers]
    steps = [b - a for a, b in zip([1.0, *times], times, strict=False)]

    assert steps == pytest.approx([steps[0]] * len(steps))


def test_a_commit_comes_with_the_heat_for_nothing():
    one = next(each for each in episodes(SEED) if each.cause is Cause.HEAT)
    told = nights(SEED)

    assert told[one.first - 1].commit != told[one.first - 2].commit
    assert told[one.first - 1].form == "usual"


# --- a night on a machine --------------------------------------------------------------------------------------------


def test_low_clocks_slow_the_cards_arithmetic_and_not_its_memory():
    usual = machine_named()
    hot = machine_on(usual, Night(1, "", clock_share=0.5)).card

    assert hot.boost_clock_hz == usual.card.boost_clock_hz / 2
    assert hot.peak("fp32") == usual.card.peak("fp32") / 2
    assert hot.bandwidth_bytes_per_s == usual.card.bandwidth_bytes_per_s


def test_a_new_driver_lengthens_launches_alone():
    usual = machine_named().host.costs
    driver = machine_on(machine_named(), Night(1, "", launch_times=2.0)).host.costs

    assert {name for name in usual if driver[name] != usual[name]} == {"launch"}
    assert driver["launch"] == 2 * usual["launch"]


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What a short run leaves: its data, and its folder."""
    folder = tmp_path_factory.mktemp("run")
    return run(Progress(results_dir=folder), seed=SEED, n_learned=4, watch_s=0), folder


@pytest.fixture(scope="module")
def tapes(left):
    data, folder = left
    return {form: load(folder / file) for form, file in data["tapes"].items()}


def test_a_wait_for_the_loader_stands_at_the_begin_of_each_step(tapes):
    timeline = with_input(tapes["usual"], 1_000_000).price(machine_named())
    waits = [(span.start_ns, span.duration_ns) for span in timeline.on(Activity.INPUT)]

    assert waits == [(step.start_ns, 1_000_000) for step in timeline.steps]


def account_of(tapes, machine, **other):
    ledgers = [ledger_of(night, tapes, machine) for night in (Night(0, ""), Night(0, "", **other))]
    usual, then = ({a: ns / each.n_steps for a, ns in each.charged_ns.items()} for each in ledgers)
    return max(Account, key=lambda a: then[a] - usual[a]), ledgers[1].step_ns / ledgers[0].step_ns


@pytest.mark.parametrize(
    ("other", "accounts"),
    [
        pytest.param({"input_times": 2.0}, {Account.WAITING_FOR_INPUT}, id="loader"),
        pytest.param({"launch_times": 2.0}, {Account.LAUNCH_OVERHEAD}, id="driver"),
        pytest.param({"form": "reads"}, {Account.LAUNCH_OVERHEAD, Account.BLOCKING_SYNC}, id="reads"),
    ],
)
def test_what_is_planted_shows_on_its_account_on_every_card(tapes, other, accounts):
    for name in ("p3.2xlarge", "T4", "H100-SXM"):
        account, times = account_of(tapes, machine_named(name), **other)
        assert account in accounts
        assert times > 1.05


def test_heat_costs_a_slow_card_much_and_a_quick_one_next_to_nothing(tapes):
    hot = {name: account_of(tapes, machine_named(name), clock_share=0.55) for name in ("T4", "H100-SXM")}

    assert hot["T4"][0] in {Account.LATENCY_BOUND, Account.TOO_FEW_BLOCKS, Account.SLOWER_FORMAT}
    assert hot["T4"][1] > 1.1
    assert hot["H100-SXM"][1] < 1.04


def test_twice_the_batch_makes_steps_longer_and_samples_shorter(tapes):
    for name in ("p3.2xlarge", "T4", "H100-SXM"):
        _, times = account_of(tapes, machine_named(name), form="larger")
        assert 1 < times < 2


def test_a_night_without_a_price_says_so(tapes):
    machine = machine_named("desktop-RTX-4090")
    entry = entry_of(nights(SEED)[0], ledger_of(nights(SEED)[0], tapes, machine), machine, "2.13")

    assert entry.usd_per_1000_steps is None
    assert "price" in entry.reasons["usd_per_1000_steps"]


# --- what the run leaves ---------------------------------------------------------------------------------------------


def test_the_history_holds_the_nights_by_their_numbers(left):
    data, folder = left
    runs = History(folder / data["history"]).runs()

    assert [each.number for each in runs] == list(range(1, N_NIGHTS + 1))
    assert len({each.key for each in runs}) == 1


def test_event_files_hold_nights_and_losses(left):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
    )
    data, folder = left
    found = accumulator.EventAccumulator(str(folder / data["events"] / "nights"))
    found.Reload()
    usual = accumulator.EventAccumulator(str(folder / data["events"] / "training, usual"))
    usual.Reload()
    runs = History(folder / data["history"]).runs()

    steps = [(point.step, point.value) for point in found.Scalars("step_ms")]
    assert steps == [(each.number, pytest.approx(each.step_ns / 1e6)) for each in runs]
    losses = next(point["losses"] for point in data["points"] if point["key"] == "usual")
    assert [point.value for point in usual.Scalars("loss")] == pytest.approx(losses)


def test_all_forms_train(left):
    data, _ = left

    assert has_all(tuple(data["tapes"]))
    assert all(loss is not None for point in data["points"] for loss in point["losses"])


def test_stopped_after_one_form_it_hands_back_what_it_finished(tmp_path):
    first = forms(2)[0]
    asked = Progress(stop_asked=(tmp_path / f"{first.key}.tape.gz").exists, results_dir=tmp_path)
    data = run(asked, seed=SEED, n_learned=2, watch_s=0)

    assert list(data["tapes"]) == [first.key]
    assert (data["history"], data["events"], data["watched"]) == (None, None, None)


def test_a_busy_machine_leaves_the_nights_and_says_why_nothing_was_watched(tmp_path, monkeypatch):
    def busy(_):
        raise MachineBusy("another measurement runs")

    monkeypatch.setattr(watched_run, "measuring", busy)
    told = watched_run.watch_a_run(Progress(results_dir=tmp_path), machine="p3.2xlarge", seconds=1, n_before=0, n_all=1)

    assert told == {"trouble": "Nothing was watched, as another measurement runs"}


def test_a_run_is_really_watched_by_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path / "lock"))
    folder = tmp_path / "results"
    folder.mkdir()
    told = watched_run.watch_a_run(Progress(results_dir=folder), machine="T4", seconds=5, n_before=0, n_all=10)
    said = (folder / "watch.txt").read_text()

    readings = readings_in(folder / told["readings"])
    assert any(process.pid == told["pid"] for r in readings for d in r.devices for process in d.processes or ())
    assert "Watched" in said
    assert list((folder / told["events"]).glob("events.out.tfevents.*"))


def test_a_reader_who_stops_it_keeps_what_was_read(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path / "lock"))
    asked = Progress(stop_asked=lambda: True, results_dir=tmp_path)
    told = watched_run.watch_a_run(asked, machine="T4", seconds=60, n_before=0, n_all=10)

    assert told["n_steps"] == 1
    assert told["turned_s"] is None


def test_without_a_gpu_the_measured_repeats_have_no_energy_and_say_why(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path / "lock"))
    data = measure(Progress(results_dir=tmp_path), device="cpu", n_steps=1)

    assert data["energy"] is None
    assert data["why_no_energy"]
    assert [point["key"] for point in data["points"]][:2] == ["usual", "usual-2"]
    assert all(point["step_ns"] > 0 for point in data["points"])


def summary_with(*gpus, reason=None):
    return SimpleNamespace(gpus=gpus, reason=reason)


def test_measured_energy_is_the_samplers():
    gpu = SimpleNamespace(energy=Energy(1200.0, 6.0, "the card's own counter"), energy_reason=None)

    assert _energy(summary_with(gpu), "cuda")["energy"] == {
        "energy_j": 1200.0,
        "seconds": 6.0,
        "how": "the card's own counter",
    }


@pytest.mark.parametrize(
    ("gpus", "reason", "device", "why"),
    [
        pytest.param((), "no driver is installed", "cpu", "no driver is installed", id="no GPU"),
        pytest.param(
            (SimpleNamespace(energy=None, energy_reason="no counter"),), None, "cuda", "no counter", id="card"
        ),
        pytest.param((SimpleNamespace(energy=None, energy_reason="x"),), None, "cpu", "processor's power", id="CPU"),
    ],
)
def test_energy_that_nobody_read_is_none_with_the_reason(gpus, reason, device, why):
    told = _energy(summary_with(*gpus, reason=reason), device)

    assert told["energy"] is None
    assert why in told["why_no_energy"]


def test_progress_counts_the_watch_too():
    heard = []
    first = _First(Progress(lambda k, n, note, partial: heard.append((k, n)), results_dir=Path()), 40)
    first.tick(3, 10)

    assert heard == [(3, 50)]
    with pytest.raises(Stopped):
        _First(Progress(stop_asked=lambda: True, results_dir=Path()), 1).tick(1, 2)
