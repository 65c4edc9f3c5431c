"""A file of points is read as it stands, and a damaged one is refused in one sentence that says where."""

from __future__ import annotations

import pytest

from gpututor.bench.accuracy.points import default_points, points_of, read_points
from gpututor.errors import PointsDamaged
from tests.bench.accuracy.made_points import HEADER, PICTURES


def read(*lines: str):
    return points_of(["\n".join(lines)][0].splitlines(keepends=True), "points.csv")


def test_a_row_is_read_in_its_own_words():
    (found,) = read(HEADER, PICTURES)

    assert (found.id, found.model, found.batch, found.measured, found.unit) == ("R1", "resnet50", 8, 400.0, "img/s")


def test_columns_may_stand_in_any_order_and_some_may_be_missing():
    (found,) = read("unit," + HEADER.removesuffix(",unit"), "img/s," + PICTURES.removesuffix(",img/s"))

    assert (found.unit, found.commit, found.step_ms) == ("img/s", "", None)


def test_a_batch_that_nobody_wrote_down_is_none():
    (found,) = read(HEADER, PICTURES.replace(",8,", ",,"))

    assert found.batch is None


def test_a_comma_in_quotes_is_text():
    (found,) = read(HEADER, PICTURES.replace("224px eager", '"224px, eager"'))

    assert found.config == "224px, eager"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        pytest.param([], "points.csv is empty", id="nothing at all"),
        pytest.param([HEADER], "holds no point", id="no rows"),
        pytest.param([HEADER.replace("n_gpus,", ""), PICTURES], "no column n_gpus", id="a column is missing"),
        pytest.param([HEADER + ",unit", PICTURES + ",x"], "names the column unit twice", id="a column twice"),
        pytest.param([HEADER, PICTURES + ",more"], "line 2 has 13 cells where .* 12 columns", id="a cell too many"),
        pytest.param([HEADER, PICTURES, PICTURES], 'line 3 has the id "R1" again', id="an id twice"),
        pytest.param([HEADER, PICTURES.replace(",400,", ",fast,")], 'column measured, is "fast"', id="no number"),
        pytest.param([HEADER, PICTURES.replace(",400,", ",0,")], "column measured, is 0;", id="nothing measured"),
        pytest.param([HEADER, PICTURES.replace(",400,", ",nan,")], "column measured, is nan", id="not a number"),
        pytest.param([HEADER, PICTURES.replace(",400,", ",-3,")], "above zero", id="less than nothing"),
        pytest.param([HEADER, PICTURES.replace(",1,8,", ",1.5,8,")], "n_gpus, is 1.5; .* whole", id="half a GPU"),
        pytest.param([HEADER, PICTURES.replace(",8,", ",2.5,")], "batch_per_gpu, is 2.5", id="half a picture"),
        pytest.param([HEADER, PICTURES.replace(",T4,", ",,")], "column gpu, is empty", id="no GPU"),
        pytest.param(
            [HEADER, PICTURES.replace("throughput,400,img/s", "nvsmi_util,140,%")], "140 % util", id="beyond 100 %"
        ),
        pytest.param([HEADER, PICTURES.replace("224px", '"224px')], "no CSV", id="an open quote"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(lines, says):
    with pytest.raises(PointsDamaged, match=says):
        read(*lines)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PointsDamaged, match=r"nowhere\.csv can't be read"):
        read_points(tmp_path / "nowhere.csv")


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "points.csv").write_bytes(b"\xff\xfe\x00id")

    with pytest.raises(PointsDamaged, match="no text in UTF-8"):
        read_points(tmp_path / "points.csv")


def test_our_own_table_says_where_every_figure_comes_from():
    assert all(p.repo and p.path and len(p.commit) == 40 for p in read_points(default_points()))


def test_our_own_table_holds_no_point_of_the_open_suite(shared):
    def key(p):
        return p.repo, p.path, p.line, p.model, p.precision, p.n_gpus, p.batch, p.metric, p.config.split(" ")[0]

    ours = {key(p) for p in read_points(default_points())}
    theirs = {key(p) for p in read_points(shared / "measured" / "validation_open.csv")}

    assert not ours & theirs
