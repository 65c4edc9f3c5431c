"""A script on a GPU of this machine, which is a made-up one whose clock we move."""

from __future__ import annotations

import json

import pytest

from gpututor.run.here import Watched, measured
from gpututor.run.parent import Ended
from gpututor.run.request import RESULT, Request
from gpututor.timeline import Activity, Origin
from tests.measure.fake_gpu import FakeGpu


class Optimizer:
    """Stands for the script's."""


def watched_run(folder, n_rounds, **wishes):
    """The outcome of rounds of one 20 µs kernel with a wait, under a watch with these wishes."""
    gpu, optimizer = FakeGpu(), Optimizer()
    request = Request("train.py", here=True, **wishes)
    watched = Watched(request, folder, gpu.as_gpu())
    for _ in range(n_rounds):
        gpu.think(30)
        gpu.launch(20)
        gpu.synchronize()
        watched.watch.optimizer_stepped(optimizer)
    watched.finish()
    ended = Ended(0, json.loads((folder / RESULT).read_text()), True, None, "exit code 0", 0, 1.0)
    return measured(request, ended, folder)


def test_steps_left_out_and_one_more_are_not_in_the_ledger(tmp_path):
    outcome = watched_run(tmp_path, 9, skip=2)

    assert outcome.timeline.label.origin is Origin.MEASURED
    assert outcome.ledger.n_steps == 9 - 2 - 1


def test_kernels_of_the_kept_steps_alone_are_counted(tmp_path):
    outcome = watched_run(tmp_path, 9, skip=2)

    assert sum(1 for _ in outcome.timeline.on(Activity.KERNEL)) == 6


@pytest.mark.parametrize("n_rounds", [0, 2, 3])
def test_a_script_that_ends_too_early_hears_it(tmp_path, n_rounds):
    outcome = watched_run(tmp_path, n_rounds, skip=3)

    assert outcome.ledger is None
