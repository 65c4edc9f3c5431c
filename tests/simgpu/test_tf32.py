"""TF32 is a leave that a program gives and takes: each product goes by what holds when it is called."""

from __future__ import annotations

import pytest
import torch

from gpututor.simgpu import simulated_gpu


def by_matmul(allowed):
    torch.backends.cuda.matmul.allow_tf32 = allowed


def by_precision(allowed):
    torch.set_float32_matmul_precision("high" if allowed else "highest")


def by_the_newer_name(allowed):
    torch.backends.cuda.matmul.fp32_precision = "tf32" if allowed else "ieee"


def by_cudnn(allowed):
    torch.backends.cudnn.allow_tf32 = allowed


def by_cudnns_newer_name(allowed):
    torch.backends.cudnn.conv.fp32_precision = "tf32" if allowed else "ieee"


@pytest.fixture(autouse=True)
def torchs_own():
    """Torch's switches as they are at the start, before the test and after it."""
    owners = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    before = [owner.fp32_precision for owner in owners]
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True  # as torch starts
    for owner, precision in zip(owners, before, strict=True):
        owner.fp32_precision = precision


@pytest.fixture
def sim():
    with simulated_gpu("A100-SXM4-40GB") as session:
        yield session


def products(sim, call):
    """Whether each kernel of `call` that can use TF32 does."""
    n_before = len(sim.tape.entries)
    call()
    kernels = [k for entry in sim.tape.entries[n_before:] for k in getattr(entry, "kernels", ())]
    return {k.tf32 for k in kernels if hasattr(k, "tf32")}


@pytest.mark.parametrize("allow", [by_matmul, by_precision, by_the_newer_name])
def test_a_remembered_product_goes_by_what_is_allowed_now(sim, allow):
    a = torch.ones(64, 64, device="simgpu")
    seen = []
    for allowed in (False, True, False, True):
        allow(allowed)
        seen.append(products(sim, lambda: a @ a))

    assert seen == [{False}, {True}, {False}, {True}]


@pytest.mark.parametrize("allow", [by_cudnn, by_cudnns_newer_name])
def test_a_remembered_convolution_goes_by_cudnns_switch(sim, allow):
    net, x = torch.nn.Conv2d(4, 4, 3).to("simgpu"), torch.ones(2, 4, 8, 8, device="simgpu")
    seen = []
    for allowed in (True, False, True):
        allow(allowed)
        seen.append(products(sim, lambda: net(x).sum().backward()))

    assert seen == [{True}, {False}, {True}]


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU])
def test_a_recurrent_layer_goes_by_cudnns_switch(sim, layer):
    net, x = layer(4, 4).to("simgpu"), torch.ones(3, 2, 4, device="simgpu")
    seen = []
    for allowed in (True, False, True):
        by_cudnn(allowed)
        seen.append(products(sim, lambda: net(x)[0].sum().backward()))

    assert seen == [{True}, {False}, {True}]


def test_products_need_leave_and_convolutions_have_it(sim):
    a = torch.ones(64, 64, device="simgpu")
    net, x = torch.nn.Conv2d(4, 4, 3).to("simgpu"), torch.ones(2, 4, 8, 8, device="simgpu")

    assert products(sim, lambda: a @ a) == {False}
    assert products(sim, lambda: net(x)) == {True}


def test_a_product_with_leave_takes_less_time(sim):
    a = torch.ones(4096, 4096, device="simgpu")
    a @ a
    by_matmul(True)
    a @ a
    torch.simgpu.synchronize()
    slow, quick = [
        s.end_ns - s.start_ns for s in sim.timeline().spans if s.work is not None and s.work.flop >= 2 * 4096**3
    ]

    assert quick < slow
