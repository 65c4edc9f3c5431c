"""Lesson 17's experiment at a small size: what it hands back, what learns, and that it can be stopped anywhere."""

from __future__ import annotations

import pytest

from gpututor.experiments import machine_itself
from gpututor.experiments.machine_itself import JOBS, POLICY, SENTENCES
from gpututor.progress import Progress, Stopped

torch = pytest.importorskip("torch")


def small(monkeypatch):
    """Fewer and smaller jobs: the two that learn, and one on the processor."""
    jobs, slow = machine_itself.variants(3, 40), machine_itself.on_processor()
    monkeypatch.setattr(
        machine_itself, "variants", lambda *_: [each for each in jobs if each.key in (SENTENCES, POLICY)]
    )
    monkeypatch.setattr(machine_itself, "on_processor", lambda: [each for each in slow if each.key == POLICY])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        return machine_itself.run(Progress(results_dir=tmp_path_factory.mktemp("run")))


def test_the_jobs_are_those_that_are_named():
    assert tuple(each.key for each in machine_itself.variants()) == JOBS


def test_a_batch_left_behind_is_told_in_torchs_own_words(data):
    assert data["said"].startswith("Expected all tensors to be on the same device")
    assert "cuda" in data["said"]
    assert "simgpu" not in data["said"]


def test_what_the_processor_takes_is_measured(data):
    assert data["here"]["ns"][POLICY] > 0
    assert data["here"]["n_cores"] >= 1
    assert data["decode_ns"] > 0


def test_the_policy_learns_its_teachers_moves(data):
    (point,) = [each for each in data["points"] if each["key"] == POLICY]

    assert point["losses"][0] == pytest.approx(0.693, abs=0.15)  # ln 2: it knows nothing
    assert point["held_out"] < 0.5 * point["losses"][0]


def test_the_policy_trains_alike_on_card_and_processor(data):
    from gpututor.jobs.policy import PolicyJob

    job = PolicyJob(torch.device("cpu"))
    losses = [float(job(k)) for k in range(10)]
    (point,) = [each for each in data["points"] if each["key"] == POLICY]

    assert point["losses"][:10] == pytest.approx(losses, rel=1e-4)


@pytest.mark.parametrize("at", ["a policy, 64 states", "reading photographs", "a policy, 64 states, on this processor"])
def test_a_run_stopped_anywhere_hands_back_what_it_has(at, monkeypatch, tmp_path):
    small(monkeypatch)
    heard = []
    progress = Progress(lambda k, n, note, partial: heard.append(note), lambda: at in heard, tmp_path)
    data = machine_itself.run(progress)

    assert data["points"][0]["key"] == SENTENCES
    assert ("here" in data) == ("processor" in at)
    assert heard[-1] == at


def test_a_run_stopped_at_once_hands_back_nothing(monkeypatch, tmp_path):
    small(monkeypatch)

    with pytest.raises(Stopped):
        machine_itself.run(Progress(stop_asked=lambda: True, results_dir=tmp_path))


def test_progress_never_goes_back(monkeypatch, tmp_path):
    small(monkeypatch)
    seen = []
    machine_itself.run(Progress(lambda k, n, *_: seen.append((k, n)), results_dir=tmp_path))

    assert [k for k, _ in seen] == sorted(k for k, _ in seen)
    assert len({n for _, n in seen}) == 1
    assert seen[-1][0] == seen[-1][1]


def test_measured_here_the_doctor_looks_first(monkeypatch, tmp_path):
    small(monkeypatch)
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path))
    data = machine_itself.measure(Progress(results_dir=tmp_path), device="cpu")

    assert set(data["doctor"]) == {str(width) for width in machine_itself.WIDTHS}
    assert all("Looking at this machine" in passes for passes, _ in data["doctor"].values())
    assert [each["key"] for each in data["points"]] == [POLICY]
