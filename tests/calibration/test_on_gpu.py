"""Calibration with a GPU, on one whose clock only moves when told: each figure is what the fake was made to take."""

from __future__ import annotations

import pytest

from gpututor.calibration import on_gpu
from gpututor.calibration.on_gpu import base_forward_ns, measured, noted, own_card, own_host
from gpututor.own_machine import base_costs
from tests.calibration.fake_bench import LAUNCH_US, TINY_US, V100, WAKE_US, Made
from tests.draw import draw


def silent(what: str, k: int, n: int) -> None:
    assert 0 < k <= n


@pytest.fixture(scope="module")
def found():
    return measured(Made().bench(), silent)


@pytest.fixture(scope="module")
def host(found):
    return own_host(found, "some CPU", 8)


def test_nothing_is_missing_on_a_card_that_answers(found):
    assert found.reasons == {}


def test_the_host_takes_so_many_times_the_tables_amounts(host):
    assert host.times == pytest.approx(0.5)


def test_the_hosts_error_is_the_distance_of_the_launch_call_which_is_another_times(host):
    assert 1 + host.error_share == pytest.approx(LAUNCH_US / base_costs()["launch"] / 0.5)


def test_a_waiting_thread_goes_on_after_what_a_launch_and_its_kernel_leave_of_the_wait(host):
    # the model says 1 µs from launch to kernel, which the fake doesn't take
    assert host.sync_us == pytest.approx(WAKE_US - 1)


def test_copies_are_bytes_over_time(host):
    assert host.pinned_bytes_per_s == pytest.approx(12e9, rel=0.01)
    assert host.pageable_bytes_per_s == pytest.approx(6e9, rel=0.01)


def test_the_cards_shares_are_those_of_its_data_sheet(found):
    card = own_card(found, Made().bench())

    assert card.bandwidth_share == pytest.approx(0.8, rel=0.01)
    assert card.sustained["fp32"] == pytest.approx(V100.sustained["fp32"] / 1.25, rel=0.01)
    assert card.sustained["fp16"] == pytest.approx(V100.sustained["fp16"] / 1.25, rel=0.01)


def test_launches_kernels_and_gaps_are_noted(found):
    assert noted(found) == {
        "launch_us": LAUNCH_US,
        "tiny_us": LAUNCH_US,
        "kernel_us": TINY_US,
        "kernel_gap_us": 0,
    }


def test_a_share_is_never_more_than_all():
    found = measured(Made(product_times=0.1, bandwidth_share=2.0).bench(), silent)
    card = own_card(found, Made().bench())

    assert (card.bandwidth_share, card.sustained["fp16"]) == (1.0, 1.0)


def test_what_fails_is_missing_with_its_reason_and_the_rest_goes_on():
    full = RuntimeError("CUDA out of memory.\nTried to allocate")
    bench = Made(failing={"copy_to_gpu": full}).bench()

    found = measured(bench, silent)
    host = own_host(found, "some CPU", 8)

    assert found.reasons["pinned_bytes_per_s"] == "RuntimeError: CUDA out of memory."
    assert host.pinned_bytes_per_s is None
    assert host.times == pytest.approx(0.5)


def test_without_an_inference_there_is_no_host():
    bench = Made(failing={"network": RuntimeError("no kernel image")}).bench()

    assert own_host(measured(bench, silent), "some CPU", 8) is None


def test_without_the_profilers_records_the_wait_is_not_known():
    bench = Made(failing={"product": RuntimeError("no kernel image")}).bench()

    found = measured(bench, silent)

    assert own_host(found, "some CPU", 8).sync_us is None
    assert "kernel_ns is missing" in found.reasons["sync_us"]


def test_a_card_outside_our_table_has_no_shares(monkeypatch):
    monkeypatch.setattr(on_gpu, "find_card", lambda name: None)
    found = measured(Made().bench(), silent)

    card = own_card(found, Made().bench())

    assert (card.bandwidth_share, dict(card.sustained)) == (None, {})
    assert "not in our table of cards" in found.reasons["sustained.fp32"]
    assert "not in our table of cards" in found.reasons["bandwidth_share"]


def test_gaps_count_only_between_kernels_that_were_queued_in_time():
    # b is queued while a runs, c is launched after b's end
    timeline = draw(host="ab.....c....", gpu="..aaa.b...cc")

    assert on_gpu.gaps_ns(timeline) == [1000]


def test_the_tables_amounts_for_an_inference_are_counted_by_hand():
    c = base_costs()
    per_block = 3 * (c["cudnn"] + c["norm"] + c["light"]) + c["light"] + 10 * (c["python"] + c["launch"])
    head = 2 * (c["python_view"] + c["view"]) + c["gemm"] + c["python"] + c["launch"]

    assert base_forward_ns(grad=True) / 1e3 == pytest.approx(16 * per_block + head)
    without = base_forward_ns(grad=True) - base_forward_ns(grad=False)
    assert without / 1e3 == pytest.approx((16 * 10 + 1) * c["autograd"])
