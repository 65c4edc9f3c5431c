"""From points to data/bands.toml: what is counted where, and that the file says it."""

from __future__ import annotations

import pytest

from gpututor.bench.accuracy import bands
from gpututor.bench.accuracy.bands import Sorted, text_of, write
from gpututor.cli import main
from gpututor.expect import accuracy
from gpututor.expect.accuracy import ALL, BUSY, PICTURES, Accuracy
from tests.bench.accuracy.made_points import point, predicting

UTIL = {"metric": "nvsmi_util", "unit": "%", "kind": "train"}


def counted(n_times: int = 4, n_utils: int = 4) -> Sorted:
    """Pictures at 500 a second predicted where 400 were measured, and a busy card where 95 % were."""
    kinds = Sorted(predicting(step_s=8 / 500))
    for k in range(n_times):
        kinds.row(point(f"R{k}"))
    for k in range(n_utils):
        kinds.row(point(f"U{k}", measured=95.0, **UTIL))
    return kinds


def test_a_time_counts_in_its_kind_among_the_busy_and_among_all():
    errors = counted().errors

    assert {name for name, logs in errors.items() if logs} == {PICTURES, BUSY, ALL}


def test_the_error_is_that_of_predicted_over_measured_time(monkeypatch, tmp_path):
    monkeypatch.setattr(bands, "data_dir", lambda: tmp_path)
    monkeypatch.setattr(accuracy, "data_dir", lambda: tmp_path)

    write(counted(), tmp_path / "points.csv")

    found = accuracy.bands.__wrapped__()
    assert found.by_regime[PICTURES] == Accuracy(PICTURES, 4, 0.25, -0.2)  # 0.8 of the measured time, so 1.25 off
    assert (found.n_util_points, found.util_points_share) == (4, 0.05)


def test_the_collectors_words_are_kept_apart():
    assert "[suite.pictures]" in text_of(counted(), bands.Path("points.csv"))


@pytest.mark.parametrize(("n_times", "n_utils"), [(3, 4), (4, 3)])
def test_too_few_points_write_nothing(n_times, n_utils):
    assert text_of(counted(n_times, n_utils), bands.Path("points.csv")) is None


def test_a_skipped_point_is_counted_as_such():
    kinds = Sorted(predicting(step_s=0.02))
    kinds.row(point(model="alexnet9000"))

    assert (kinds.n_seen, kinds.n_skipped, kinds.errors[ALL]) == (1, 1, [])


def test_bands_come_from_all_of_our_own_points_alone(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bench", "accuracy", "--write-bands", "--only", "lstm"])

    assert ended.value.code == 2
    assert "leave --points and --only out" in capsys.readouterr().err
