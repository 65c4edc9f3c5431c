"""A sweep's points: priced on the machine that is chosen, drawn line by line, honest about what didn't run."""

from __future__ import annotations

import math

import pytest

from gpututor.experiments.sweeps import Variant, simulate
from gpututor.lookup import machine_named
from gpututor.page.kept import Kept
from gpututor.page.sweep import LOSS, MACHINES, MEMORY, RATE, STEP, Point, cost_column, points_table, sweep_points
from gpututor.progress import Progress
from gpututor.results import StoredResult

GIB = 2**30


def summing(n_floats: int):
    def make(device):
        import torch

        numbers = torch.ones(n_floats, device=device)
        return lambda k: numbers.sum()

    return make


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    variants = [
        Variant("small", "few numbers", summing(1000), 1, 10),
        Variant("large", "many numbers", summing(5 * 2**30), 2, 10, numerics=False),
    ]
    data = simulate(Progress(results_dir=folder), variants, what="a test", machine="H100-SXM", n_steps=4)
    return StoredResult(folder, "done", "a:b", {}, data, "", "", 4, 4)


def points(result, name: str) -> dict[str, Point]:
    kept = Kept({key: result.folder / file for key, file in result.data["tapes"].items()}, result=result)
    return {point.key: point for point in sweep_points(kept, machine_named(name))}


def a_point(**changed) -> Point:
    whole = {"key": "a", "label": "a", "x": 1, "n_samples": 4, "played": None, "losses": (), "memory_bytes": None}
    return Point(**(whole | changed))


def test_each_machine_that_can_be_chosen_is_known():
    assert all(machine_named(name).card for name in MACHINES.values())


def test_another_machine_gives_other_times_without_a_new_run(result):
    assert points(result, "H100-SXM")["large"].step_ns < points(result, "A100-SXM4-80GB")["large"].step_ns


def test_what_the_chosen_card_has_no_memory_for_is_said(result):
    large = points(result, "T4")["large"]

    assert large.played is None
    assert large.trouble == "needs 20.0 GiB, the T4 has 16"
    assert large.step_ns == math.inf


def test_its_line_says_so_instead_of_numbers(result):
    table = points_table(list(points(result, "T4").values()), STEP, RATE, MEMORY)

    assert '<td colspan="3" class="gt-cant">needs 20.0 GiB' in table


def test_the_stressed_line_is_marked(result):
    table = points_table(list(points(result, "T4").values()), STEP, marked="small")

    assert table.count("gt-marked") == 1


def test_labels_are_escaped():
    assert "<script>" not in points_table([a_point(label="<script>", trouble="<script>")], STEP)


def test_samples_a_second_follow_from_step_and_batch(result):
    small = points(result, "T4")["small"]

    assert small.samples_per_s == pytest.approx(10 * 1e9 / small.step_ns)


def test_money_is_hours_times_the_price(result):
    small = points(result, "g4dn.xlarge")["small"]
    hours = 1e6 / small.samples_per_s / 3600

    assert small.usd(1e6) == pytest.approx(hours * 0.526)


def test_without_a_price_there_is_none(result):
    small = points(result, "A40")["small"]

    assert small.usd(100) is None
    assert cost_column(100, "An epoch")[1](small) == "—"


def test_no_loss_is_a_dash():
    assert LOSS[1](a_point(losses=(None, None))) == "—"


def test_the_loss_is_smoothed_over_samples_and_told_over_seconds(result):
    small = points(result, "T4")["small"]
    seconds, losses = zip(*small.smooth(n_samples=10), strict=True)

    assert losses == (1000.0,) * 4
    assert seconds == pytest.approx([k * small.step_ns / 1e9 for k in (1, 2, 3, 4)])


@pytest.mark.parametrize(
    ("target", "steps"),
    [
        pytest.param(3.5, 2, id="mean of 5 and 2"),  # means of two: 5, 3.5, 1.5, 1
        pytest.param(1.0, 4, id="the last"),
        pytest.param(0.5, None, id="never"),
        pytest.param(9.0, 2, id="not before so many samples were seen"),
    ],
)
def test_when_a_loss_is_reached_is_counted_in_steps(result, target, steps):
    played = points(result, "T4")["small"].played
    point = a_point(played=played, losses=(5.0, 2.0, 1.0, 1.0))
    reached = point.reaches_ns(target, n_samples=8)

    assert reached == (None if steps is None else pytest.approx(steps * played.step_ns))


def test_pricing_leaves_the_garbage_collector_as_it_was(result):
    import gc

    points(result, "A100-SXM4-80GB")

    assert gc.isenabled()
