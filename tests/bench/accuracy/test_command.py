"""`gpututor bench accuracy` from the outside."""

from __future__ import annotations

import json

import pytest

from gpututor.bench.accuracy import rows
from gpututor.cli import main
from tests.bench.accuracy.made_points import HEADER, PICTURES

UNKNOWN = "R2,other,infer,alexnet9000,eager,fp32,T4,1,8,throughput,400,img/s"


@pytest.fixture
def run(capsys):
    def _run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["bench", "accuracy", *arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return _run


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("\n".join([HEADER, PICTURES.replace("resnet50", "resnet18"), UNKNOWN]))
    return str(file)


def test_a_file_of_points_becomes_json(run, path):
    status, out, _ = run("--points", path, "--json")
    fields = json.loads(out)

    assert status == 0
    assert (fields["n"], fields["skipped"]) == (1, 1)
    assert fields["rows"][0]["predicted"] > 0
    assert fields["regimes"]["other"]["skipped"] == 1


def test_the_table_shows_regimes_rows_and_reasons(run, path):
    _, out, _ = run("--points", path)

    assert "pictures" in out
    assert "The worst 1, with what may carry the error" in out
    assert 'skipped R2 (alexnet9000): none of our workloads is called "alexnet9000"' in out


def test_one_regime_or_point_can_be_asked_for(run, path):
    _, out, _ = run("--points", path, "--only", "other", "--json")

    assert [row["id"] for row in json.loads(out)["rows"]] == ["R2"]


def test_an_unknown_regime_is_refused_with_near_ones(run, path):
    status, _, err = run("--points", path, "--only", "picturs")

    assert status == 2
    assert "Did you mean pictures?" in err


def test_a_damaged_file_ends_with_one_sentence(run, tmp_path):
    status, out, err = run("--points", str(tmp_path / "none.csv"))

    assert (status, out) == (2, "")
    assert err.startswith("gpututor: ")
    assert err.count("\n") == 1


def test_ctrl_c_shows_what_there_is(run, path, monkeypatch):
    def stopped(point):
        raise KeyboardInterrupt

    monkeypatch.setattr(rows, "row_of", stopped)
    status, out, _ = run("--points", path, "--json")

    assert status == 0
    assert [row["skipped"] for row in json.loads(out)["rows"]] == ["stopped before its turn"] * 2
