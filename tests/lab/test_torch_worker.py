"""Workers that have torch: imported while the reader still reads, and the same for every job."""

from __future__ import annotations

import pytest

from gpututor.lab.pool import Lab

E = "experiments_for_tests:"


@pytest.fixture(scope="module")
def torch_lab(_workers_find_the_experiments):
    lab = Lab(1, allowed=["experiments_for_tests"])
    lab.warm()
    yield lab
    lab.close()


def test_a_warm_worker_has_imported_torch(torch_lab):
    assert torch_lab.run(E + "who_am_i").data["torch"]


def test_torch_draws_the_same_numbers_in_every_job(torch_lab):
    draws = [torch_lab.run(E + "torch_draws", seed=3).data["first"] for _ in range(2)]

    assert draws[0] == draws[1]


def test_a_job_finds_torch_as_a_fresh_process_has_it(torch_lab):
    torch_lab.run(E + "torch_spoils")

    assert torch_lab.run(E + "torch_settings").data == [1, True, "torch.float32"]
