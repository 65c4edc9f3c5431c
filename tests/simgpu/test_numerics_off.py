"""With numerics off: the same account, small values known, the rest said in words, models larger than this machine."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from gpututor import timeline_file
from gpututor.bench.models import Gpt2, ResNet50
from gpututor.errors import NumericsOff
from gpututor.jobs.seq2seq import Seq2SeqJob
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.not_computed import NotComputed
from gpututor.simgpu.recording import tape_steps

GIB = 2**30


@pytest.fixture
def off():
    with simulated_gpu(numerics=False) as session:
        yield session


# --- the same account -------------------------------------------------------------------------------------------


class Reads(nn.Module):
    """Embedding, two layers of a GRU with dropout, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.gru = nn.Embedding(100, 32), nn.GRU(32, 48, 2, batch_first=True, dropout=0.1)
        self.dropout, self.out = nn.Dropout(0.1), nn.Linear(48, 100)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.dropout(self.gru(self.word(ids))[0]))


def words(n: int, *shape: int) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    return lambda: (torch.randint(0, n, shape), torch.randint(0, n, shape))


def pictures() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 3, 32, 32), torch.randint(0, 10, (2,))


def small_resnet() -> nn.Module:
    return ResNet50(classes=10, width=8, blocks=(1, 1, 2, 1))


def in_channels_last(net: nn.Module) -> nn.Module:
    return net.to(memory_format=torch.channels_last)


SGD = lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)  # noqa: E731
JOBS = {
    "GPT-2": (lambda: Gpt2(2, 64, 4, 200, 32), words(200, 2, 16), torch.optim.AdamW),
    "ResNet": (small_resnet, pictures, SGD),
    "ResNet, channels last": (lambda: in_channels_last(small_resnet()), pictures, torch.optim.Adam),
    "GRU": (Reads, words(100, 4, 9), torch.optim.Adam),
}


def account(name: str, *, numerics: bool) -> tuple[bytes, dict[str, int]]:
    """The timeline of three steps as bytes, and the allocator's statistics."""
    make, batch, optimizer = JOBS[name]
    torch.manual_seed(0)
    with simulated_gpu("A100-SXM4-40GB", numerics=numerics) as sim:
        net = make().to("simgpu")
        opt = optimizer(net.parameters())
        for _ in range(3):
            sim.begin_step()
            x, y = (t.to("simgpu") for t in batch())
            out = net(x)
            loss = nn.functional.cross_entropy(out.flatten(0, -2), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            (out.argmax(-1) == y).sum().item()
            loss.item()
        sim.end_run()
        return timeline_file.to_bytes(sim.timeline()), torch.simgpu.memory_stats()


@pytest.mark.parametrize("name", JOBS)
def test_the_same_shapes_give_the_same_timeline_and_memory_with_numerics_on_or_off(name):
    assert account(name, numerics=True) == account(name, numerics=False)


def test_the_askers_job_with_every_sentence_forced_is_accounted_the_same(monkeypatch):
    monkeypatch.setattr("gpututor.jobs.seq2seq.TEACHER_FORCING", 1.0)

    def run(numerics: bool) -> bytes:
        with simulated_gpu(numerics=numerics) as sim:
            job = Seq2SeqJob("simgpu", 0, n_steps=4, hidden=32)
            for k in range(4):
                sim.begin_step(1)
                job.step(k)
            sim.end_run()
            return timeline_file.to_bytes(sim.timeline())

    assert run(True) == run(False)


def test_the_askers_job_decoding_by_its_own_guess_needs_values_and_says_so(monkeypatch):
    monkeypatch.setattr("gpututor.jobs.seq2seq.TEACHER_FORCING", 0.0)
    with simulated_gpu(numerics=False):
        job = Seq2SeqJob("simgpu", 0, n_steps=1, hidden=32)
        with pytest.raises(NumericsOff, match="a comparison needs a value that was not computed"):
            job.step(0)


def test_packed_sequences_are_followed_by_their_lengths():
    def run(numerics: bool) -> bytes:
        with simulated_gpu(numerics=numerics) as sim:
            lstm = nn.LSTM(5, 7).to("simgpu")
            x = torch.randn(6, 3, 5).to("simgpu")
            out, _ = lstm(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6, 4, 1])))
            padded, _ = nn.utils.rnn.pad_packed_sequence(out)
            padded.sum().backward()
            return timeline_file.to_bytes(sim.timeline())

    assert run(True) == run(False)


def test_a_loss_scaler_steps_as_in_a_healthy_run(off):
    net = nn.Linear(8, 8).to("simgpu")
    opt = torch.optim.SGD(net.parameters(), 0.1)
    scaler = torch.amp.GradScaler("simgpu", growth_interval=2)
    stepped = []
    opt.register_step_post_hook(lambda *_: stepped.append(1))
    for _ in range(4):
        scaler.scale(net(torch.ones(4, 8, device="simgpu")).sum()).backward()
        scaler.step(opt)
        scaler.update()

    assert len(stepped) == 4
    assert scaler.get_scale() == 65536 * 4


# --- what is known ----------------------------------------------------------------------------------------------


def test_whole_numbers_and_masks_from_the_host_stay_known(off):
    ids = torch.tensor([[3, 0, 5], [0, 0, 7]]).to("simgpu")

    assert (ids != 0).sum().item() == 3
    assert ids.max().item() == 7
    assert ids[ids > 2].tolist() == [3, 5, 7]
    assert torch.arange(4, device="simgpu").cumsum(0).tolist() == [0, 1, 3, 6]


def test_what_a_mask_selects_of_unknown_numbers_has_the_masks_size(off):
    mask = torch.tensor([True, False, True, True]).to("simgpu")
    x = torch.randn(4, 100, device="simgpu")

    assert x[mask].shape == (3, 100)
    assert x[:, torch.tensor([0, 5]).to("simgpu")].shape == (4, 2)


def test_a_few_numbers_with_a_fraction_stay_known(off):
    rates = torch.linspace(0, 0.5, 6, device="simgpu")

    assert [round(r.item(), 1) for r in rates] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_an_update_by_something_unknown_makes_the_tensor_and_its_views_unknown(off):
    x = torch.zeros(4, device="simgpu")
    view = x[:2]
    assert view.tolist() == [0.0, 0.0]
    x[1] = torch.randn(1000, device="simgpu").sum()

    assert repr(view.tolist()) == "[not computed, not computed]"


def test_a_shape_that_unknown_values_decide_is_an_error_in_words(off):
    x = torch.randn(1000, device="simgpu")

    for needs in (x.nonzero, lambda: x[x > 0], lambda: torch.unique(x), lambda: x.masked_select(x > 0)):
        with pytest.raises(NumericsOff, match="numerics=True"):
            needs()


def test_a_branch_on_an_unknown_value_is_an_error_in_words(off):
    x = torch.randn(1000, device="simgpu")

    for decides in (
        lambda: bool((x > 0).any()),
        lambda: int(x.argmax()),
        lambda: range(x.argmax()),
        lambda: torch.allclose(x, x),
        lambda: torch.equal(x, x),
        x.cpu,
        lambda: x.mean().item() > 1,
    ):
        with pytest.raises(NumericsOff, match="numerics"):
            decides()


# --- what is not computed ---------------------------------------------------------------------------------------


def test_a_loss_can_be_logged_and_averaged(off):
    loss = torch.randn(1000, device="simgpu").mean()
    total = 0.0
    for _ in range(3):
        total += loss.item()

    assert f"loss {total / 3:.4f}" == "loss not computed"
    assert f"{loss:.3f}" == "not computed"
    assert str(round(loss.item(), 2)) == "not computed"
    assert math.isnan(float(loss))
    assert "numerics off" in repr(torch.randn(1000, device="simgpu"))


def test_reading_a_loss_waits_for_the_card_as_it_does_with_numerics(off):
    loss = torch.randn(1000, device="simgpu").mean()
    n_entries = len(off.tape.entries)
    loss.item()

    assert [e.name for e in off.tape.entries[n_entries:]] == ["item"]


@pytest.mark.parametrize(
    "decides",
    [
        pytest.param(lambda n: n < 1, id="comparison"),
        pytest.param(lambda n: n == 3, id="equality"),
        pytest.param(lambda n: 1 if n else 2, id="condition"),
        pytest.param(int, id="int"),
        pytest.param(lambda n: [1, 2][n], id="index"),
        pytest.param(lambda n: {n: 1}, id="key"),
        pytest.param(math.floor, id="floor"),
        pytest.param(lambda n: min(n, 3), id="min"),
    ],
)
def test_a_number_that_was_not_computed_decides_nothing(decides):
    with pytest.raises(NumericsOff, match="was not computed"):
        decides(NotComputed())


def test_a_number_that_was_not_computed_survives_pickle_and_arithmetic():
    number = pickle.loads(pickle.dumps(NotComputed()))

    assert all(isinstance(n, NotComputed) for n in (number, 1 - number, number / 2, -number, number**2, sum([number])))


def test_a_recorded_step_has_no_loss():
    tape = tape_steps(lambda k: torch.randn(1000, device="simgpu").mean().item(), n_steps=2, numerics=False)

    assert tape.losses == [None, None]


# --- models far larger than this machine ------------------------------------------------------------------------


def llama(*arguments: object) -> dict[str, object]:
    """Train Llama 3 8B in a process of its own."""
    script = Path(__file__).with_name("llama3.py")
    command = [sys.executable, "-W", "ignore", str(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_step_of_llama_3_8b_is_accounted_in_a_moment_and_little_memory():
    found = llama("sgd", "bfloat16", 1, 2048)

    assert found["n_parameters"] == 8_030_261_248  # as published
    assert found["host_peak_bytes"] < 2 * GIB
    assert found["weights_bytes"] >= 2 * found["n_parameters"]
    assert 4 * found["n_parameters"] < found["peak_bytes"] < 60 * GIB
    assert found["step_cpu_s"] < 2
    # on 8 H100 torchtitan reports 33 to 39 % with communication and recomputation, which one card doesn't have;
    # 57 % on A100 (pytorch/torchtitan, docs/performance.md)
    assert 0.33 < found["mfu"] < 0.6


def test_llama_3_8b_with_adamw_in_fp32_does_not_fit_one_h100():
    found = llama("adamw", "float32", 1, 2048)

    assert found["error"] == "OutOfMemoryError"
    assert "a simulated H100-SXM, has a total capacity of 78.96 GiB" in found["words"]
    assert found["host_peak_bytes"] < 2 * GIB


# --- ops that give nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_an_op_that_gives_nothing_needs_no_rule_for_shapes(off, momentum):
    # torch 2.13 has none for the fused SGD
    parameters = [torch.zeros(1000, device="simgpu", requires_grad=True) for _ in range(3)]
    for each in parameters:
        each.grad = torch.zeros_like(each)
    torch.optim.SGD(parameters, 0.1, momentum=momentum, fused=True).step()

    assert any(entry.name == "_fused_sgd_" and entry.kernels for entry in off.tape.entries if hasattr(entry, "kernels"))
