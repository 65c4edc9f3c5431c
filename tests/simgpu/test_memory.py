"""A simulated card's memory, as a training program sees it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from gpututor.bench.models import Gpt2, ResNet50
from gpututor.cards import card
from gpututor.model.tape import HostWork
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.memory import CUDA_MALLOC_NS, usable_bytes
from gpututor.simgpu.tensor import SimTensor
from gpututor.timeline import Activity

MIB, GIB = 2**20, 2**30


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


@pytest.fixture
def off():
    with simulated_gpu("H100-SXM", numerics=False) as session:
        yield session


# --- the calls --------------------------------------------------------------------------------------------------


def test_allocated_is_rounded_and_reserved_comes_in_segments(sim):
    x = torch.empty(3, device="simgpu")

    assert x.numel() == 3
    assert torch.simgpu.memory_allocated() == 512
    assert torch.simgpu.memory_reserved() == 2 * MIB


def test_an_empty_tensor_takes_nothing(sim):
    keep = torch.empty(0, device="simgpu")

    assert keep.numel() == 0
    assert torch.simgpu.memory_reserved() == 0


def test_free_and_total_leave_out_what_the_driver_keeps(sim):
    free, total = torch.simgpu.mem_get_info()

    assert total == usable_bytes(card("V100-SXM2-16GB"))
    assert 15.7 < total / GIB < 15.9  # reports of this card say 15.77
    assert 0.3 < (total - free) / GIB < 0.6


def test_a_card_with_check_bits_in_its_memory_shows_a_sixteenth_less():
    assert 14.7 < usable_bytes(card("T4")) / GIB < 14.85  # reports of this card say 14.75


def test_peaks_begin_anew_from_what_is_in_use(sim):
    kept = torch.empty(MIB, device="simgpu")
    torch.empty(8 * MIB, device="simgpu")
    assert torch.simgpu.max_memory_allocated() == 36 * MIB
    torch.simgpu.reset_peak_memory_stats()

    assert kept.numel() == MIB
    assert torch.simgpu.max_memory_allocated() == 4 * MIB


def test_an_emptied_cache_goes_back_to_the_driver(sim):
    torch.empty(8 * MIB, device="simgpu")
    torch.simgpu.empty_cache()

    assert torch.simgpu.memory_reserved() == 0
    assert torch.simgpu.memory_stats()["num_device_free"] == 1


def test_torch_accelerator_gives_the_same_figures(sim):
    x = torch.empty(100, device="simgpu")

    assert x.numel() == 100
    assert torch.accelerator.memory_allocated() == torch.simgpu.memory_allocated() == 512
    assert torch.accelerator.max_memory_reserved() == 2 * MIB
    assert torch.accelerator.memory_stats() == torch.simgpu.memory_stats()


def test_statistics_can_be_had_as_dictionaries_in_dictionaries(sim):
    x = torch.empty(100, device="simgpu")

    assert x.numel() == 100
    assert torch.simgpu.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == 512
    assert "Allocated memory" in torch.simgpu.memory_summary(abbreviated=True)
    assert torch.simgpu.memory_snapshot()[0]["allocated_size"] == 512


def test_each_card_has_its_own_memory():
    with simulated_gpu("p3.8xlarge"):
        x = torch.empty(100, device="simgpu:1")

        assert x.numel() == 100
        assert torch.simgpu.memory_allocated(0) == 0
        assert torch.simgpu.memory_allocated("simgpu:1") == 512


def test_a_freed_tensor_that_a_side_stream_works_on_is_not_reused_before_it_is_done(off):
    side = torch.simgpu.Stream()
    x = torch.empty(4096, 4096, device="simgpu")
    with torch.simgpu.stream(side):
        for _ in range(4):
            y = x @ x
    x.record_stream(side)
    del x
    torch.empty(4096, 4096, device="simgpu")
    assert torch.simgpu.memory_stats()["active.all.current"] == 2  # x waits, y lives
    side.synchronize()
    torch.empty(4096, 4096, device="simgpu")

    assert y.numel() == 2**24
    assert torch.simgpu.memory_stats()["active.all.current"] == 1


# --- what it costs ----------------------------------------------------------------------------------------------


def test_a_new_segment_is_start_up_work_of_the_host_and_a_cached_one_is_not(sim):
    for _ in range(3):
        torch.empty(8 * MIB, device="simgpu")

    assert [e for e in sim.tape.entries if isinstance(e, HostWork)] == [
        HostWork(Activity.STARTUP, "cudaMalloc", CUDA_MALLOC_NS)
    ]


def test_a_training_loop_asks_the_driver_in_its_first_steps_only(off):
    net = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048)).to("simgpu")
    opt = torch.optim.AdamW(net.parameters())
    n_mallocs = []
    for _ in range(4):
        net(torch.empty(2048, 2048, device="simgpu")).sum().backward()
        opt.step()
        opt.zero_grad()
        n_mallocs.append(torch.simgpu.memory_stats()["num_device_alloc"])

    assert n_mallocs[1:] == [n_mallocs[1]] * 3


# --- a full card ------------------------------------------------------------------------------------------------


def test_a_full_card_is_cudas_error_with_cudas_figures(off):
    keep = torch.empty(60 * GIB, dtype=torch.uint8, device="simgpu")
    with pytest.raises(torch.simgpu.OutOfMemoryError) as caught:
        torch.empty(30 * GIB, dtype=torch.uint8, device="simgpu")

    assert keep.numel() == 60 * GIB
    words = str(caught.value)
    assert words.startswith("CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0, a simulated H100-SXM, ")
    assert "has a total capacity of 78.96 GiB of which 18.48 GiB is free." in words
    assert "Including non-PyTorch memory, this process has 60.48 GiB memory in use." in words
    assert "60.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated." in words


def test_a_process_held_to_a_share_of_the_card_is_told_so(off):
    torch.simgpu.set_per_process_memory_fraction(0.5)
    with pytest.raises(torch.OutOfMemoryError, match=r"39\.48 GiB allowed"):
        torch.empty(50 * GIB, dtype=torch.uint8, device="simgpu")
    with pytest.raises(ValueError, match="Allowed range"):
        torch.simgpu.set_per_process_memory_fraction(2)


def test_with_numerics_on_a_result_that_cannot_fit_is_refused_before_the_host_computes_it(sim):
    rows = torch.ones(200_000, 1, device="simgpu")

    for impossible in (
        lambda: rows * rows.T,
        lambda: torch.zeros(200_000, 200_000, device="simgpu"),
        lambda: rows @ rows.T,
        lambda: rows.repeat(1, 200_000),
    ):
        with pytest.raises(torch.OutOfMemoryError, match=r"149\.01 GiB"):
            impossible()


def test_after_a_full_card_training_goes_on_with_a_smaller_batch(off):
    net = nn.Linear(1024, 1024).to("simgpu")

    def step(batch):
        net(torch.empty(batch, 1024, device="simgpu")).relu().square().sum().backward()

    with pytest.raises(torch.OutOfMemoryError):
        step(10_000_000)
    step(1_000)

    assert net.weight.grad is not None
    assert torch.simgpu.memory_stats()["num_ooms"] == 1


def test_a_tensor_alive_at_the_end_of_the_process_makes_no_noise():
    code = (
        "import torch; from gpututor.simgpu import simulated_gpu\n"
        "with simulated_gpu() as sim: x = torch.ones(10, device='simgpu'); y = x * 2\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr == ""


# --- whole networks against a closed formula ---------------------------------------------------------------------
# What the allocator hands out may be up to 1 MiB more than was asked for, so formulas are held against what was asked.


def asked_now() -> int:
    return torch.simgpu.memory_stats()["requested_bytes.all.current"]


def n_bytes(*tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def n_bytes_behind(tensors) -> int:
    """Bytes of the memory behind these tensors, each piece once."""
    return sum(piece.asked for piece in {t.block.piece for t in tensors} - {None})


class Saved:
    """Sums the tensors that autograd saves for the backward pass."""

    def __init__(self) -> None:
        self.tensors: list[SimTensor] = []

    def __enter__(self):
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda t: t)
        self._hooks.__enter__()
        return self

    def __exit__(self, *exc):
        self._hooks.__exit__(*exc)

    def _pack(self, t):
        self.tensors.append(t.detach())
        return t


NETWORKS = {
    "GPT-2, 12 layers": (Gpt2, lambda: torch.randint(0, 50257, (4, 256))),
    "ResNet-50": (ResNet50, lambda: torch.randn(8, 3, 224, 224)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_memory_after_the_forward_pass_is_weights_buffers_batch_result_and_what_autograd_saved(off, name):
    make, batch = NETWORKS[name]
    net = make().to("simgpu")
    x = batch().to("simgpu")
    with Saved() as saved:
        out = net(x)
    held = [*net.parameters(), *net.buffers(), x, out, *saved.tensors]

    assert asked_now() == n_bytes_behind(held)
    assert len(saved.tensors) > 50


@pytest.mark.parametrize("name", NETWORKS)
def test_between_steps_adamw_holds_four_numbers_a_parameter(off, name):
    make, batch = NETWORKS[name]
    net = make().to("simgpu")
    opt = torch.optim.AdamW(net.parameters())
    for _ in range(2):
        opt.zero_grad()
        net(batch().to("simgpu")).mean().backward()
        opt.step()
    # weight, gradient and two averages; the step counters are on the host, as with CUDA
    assert asked_now() == 4 * n_bytes(*net.parameters()) + n_bytes(*net.buffers())


def test_the_peak_of_gpt2_is_what_its_formula_says():
    """Weights, both averages and saved tensors when backward begins; it frees faster than it makes gradients."""
    batch, length, words = 4, 256, 50257
    with simulated_gpu("H100-SXM", numerics=False):
        net = Gpt2().to("simgpu")
        opt = torch.optim.AdamW(net.parameters())
        ids = torch.randint(0, words, (batch, length)).to("simgpu")
        weights = {p.block.piece for p in net.parameters()}

        def step() -> int:
            opt.zero_grad()
            with Saved() as saved:
                loss = nn.functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
            kept = n_bytes_behind(t for t in saved.tensors if t.block.piece not in weights)
            saved.tensors.clear()
            loss.backward()
            opt.step()
            return kept

        step()
        torch.simgpu.reset_peak_memory_stats()
        saved_bytes = step()
        at_start_of_backward = 3 * n_bytes(*net.parameters()) + saved_bytes
        logits = 4 * batch * length * words
        peak = torch.simgpu.memory_stats()["requested_bytes.all.peak"]

    assert at_start_of_backward + logits <= peak <= 1.01 * (at_start_of_backward + 2 * logits)


def test_dropout_keeps_a_mask_of_one_byte_an_element_and_not_its_input(off):
    x = torch.empty(MIB, device="simgpu", requires_grad=True)
    before = torch.simgpu.memory_allocated()
    y = nn.functional.dropout(x * 2, 0.5)

    assert torch.simgpu.memory_allocated() - before == 4 * MIB + MIB
    y.sum().backward()
    del y
    assert torch.simgpu.memory_allocated() - before == 4 * MIB  # the gradient


def test_fused_attention_keeps_its_inputs_its_result_and_a_number_a_row(off):
    q, k, v = (torch.empty(2, 4, 512, 64, device="simgpu", requires_grad=True) for _ in range(3))
    before = torch.simgpu.memory_allocated()
    y = nn.functional.scaled_dot_product_attention(q, k, v)

    assert torch.simgpu.memory_allocated() - before == 4 * (2 * 4 * 512 * 64) + 4 * (2 * 4 * 512)
    assert y.shape == q.shape


def test_an_lstm_in_training_keeps_gates_and_cells_of_each_step(off):
    lstm = nn.LSTM(32, 64).to("simgpu")
    x = torch.empty(10, 4, 32, device="simgpu")
    before = asked_now()
    lstm(x)
    assert asked_now() == before
    out, (h, c) = lstm(x)
    results = n_bytes(out, h, c)
    zeros = 2 * 4 * 4 * 64  # the states that nn.LSTM makes

    assert asked_now() - before == results + zeros + 10 * 4 * 64 * 5 * 4


def test_a_product_of_four_dimensions_takes_its_memory_once():
    with simulated_gpu(numerics=False):
        x = torch.ones(2, 2, 256, 256, device="simgpu")
        before = torch.simgpu.memory_allocated()
        y = torch.matmul(x, x)

        assert torch.simgpu.max_memory_allocated() - before == y.numel() * y.element_size()
