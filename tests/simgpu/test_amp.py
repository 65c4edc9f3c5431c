"""Autocast on the simulated GPU: CUDA's lists and policies, one cast of a weight, loss scaling."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from gpututor.model.tape import TapeOp
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.precision import lists as amp_lists

HEADER = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
COPIED_FROM = "2.13"
HALF, BFLOAT, SINGLE = torch.float16, torch.bfloat16, torch.float32


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


def listed(macro: str) -> set[str]:
    """The ops that one macro of torch's header lists, written "name" or "name.overload"."""
    if not HEADER.is_file():
        pytest.skip(f"this torch comes without {HEADER.name}")
    body = re.search(rf"#define {macro}\(_\)(.*?[^\\])\n", HEADER.read_text(), re.DOTALL)
    assert body is not None
    return {".".join(filter(None, pair)) for pair in re.findall(r"_\(\s*(\w+)(?:,\s*(\w+))?\s*\)", body[1])}


@pytest.mark.parametrize(
    ("macro", "ours"),
    [
        ("AT_FORALL_LOWER_PRECISION_FP", amp_lists.LOWER_PRECISION),
        ("AT_FORALL_FP32", amp_lists.FLOAT32),
        ("AT_FORALL_FP32_SET_OPT_DTYPE", amp_lists.FLOAT32_OUT),
        ("AT_FORALL_PROMOTE", amp_lists.WIDEST),
    ],
)
def test_our_lists_are_those_of_torchs_header(macro, ours):
    other = listed(macro) ^ set(ours)

    assert not other if torch.__version__.startswith(COPIED_FROM) else other <= amp_lists.NOT_IN_ALL_VERSIONS


def test_ops_that_get_a_dtype_appended_are_those_of_torchs_header():
    listed("AT_FORALL_PROMOTE")  # skips without a header
    body = (
        HEADER.read_text().partition("#define AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(_)")[2].partition("#define")[0]
    )

    assert set(re.findall(r'"(norm\.\w+)"', body)) == set(amp_lists.FLOAT32_APPENDED)


def ones(*size, dtype=SINGLE, device="simgpu"):
    return torch.ones(size, dtype=dtype, device=device)


LOWER = {
    "linear": lambda x: functional.linear(x, ones(3, 3)),
    "matmul": lambda x: x @ x,
    "mv": lambda x: torch.mv(x, ones(3)),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, x),
    "addmm": lambda x: torch.addmm(x, x, x),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x[None]),
    "prelu": lambda x: functional.prelu(x, ones(1)),
    "conv1d": lambda x: functional.conv1d(x[None], ones(3, 3, 1)),
    "conv2d": lambda x: functional.conv2d(x[None, None], ones(1, 1, 2, 2)),
    "conv_transpose2d": lambda x: functional.conv_transpose2d(x[None, None], ones(1, 1, 2, 2)),
    "attention": lambda x: functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x, x]),
    "lstm_cell": lambda x: nn.LSTMCell(3, 4).to("simgpu")(x)[0],
    "gru_cell": lambda x: nn.GRUCell(3, 4).to(x.device)(x),
}
SINGLES = {
    "exp": torch.exp,
    "pow": lambda x: x**2,
    "rsqrt": torch.rsqrt,
    "softplus": functional.softplus,
    "layer_norm": lambda x: functional.layer_norm(x, (3,)),
    "group_norm": lambda x: functional.group_norm(x[None], 1),
    "mse_loss": lambda x: functional.mse_loss(x, x),
    "nll_loss": lambda x: functional.nll_loss(x, torch.zeros(3, dtype=torch.int64, device="simgpu")),
    "cross_entropy": lambda x: functional.cross_entropy(x, torch.zeros(3, dtype=torch.int64, device="simgpu")),
    "logits": lambda x: functional.binary_cross_entropy_with_logits(x, x),
    "interpolate": lambda x: functional.interpolate(x[None, None], scale_factor=2),
    "softmax": lambda x: torch.softmax(x, 0),
    "log_softmax": lambda x: functional.log_softmax(x, -1),
    "sum": torch.sum,
    "sum of a row": lambda x: x.sum(1),
    "prod": torch.prod,
    "cumsum": lambda x: torch.cumsum(x, 0),
    "vector norm": torch.linalg.vector_norm,
    "norm": lambda x: torch.ops.aten.norm.Scalar(x, 2),
    "norm of rows": lambda x: torch.ops.aten.norm.ScalarOpt_dim(x, 2, [1]),
}


@pytest.mark.parametrize("region", [HALF, BFLOAT], ids=str)
@pytest.mark.parametrize("name", LOWER)
def test_an_op_of_the_first_list_runs_in_the_regions_dtype(sim, name, region):
    with torch.autocast("simgpu", dtype=region):
        assert LOWER[name](ones(3, 3)).dtype is region


@pytest.mark.parametrize("name", SINGLES)
def test_an_op_of_the_float32_lists_gives_float32(sim, name):
    with torch.autocast("simgpu", dtype=HALF):
        assert SINGLES[name](ones(3, 3, dtype=HALF)).dtype is SINGLE


def test_a_dtype_that_the_caller_names_stands(sim):
    with torch.autocast("simgpu"):
        assert ones(3, dtype=HALF).sum(dtype=HALF).dtype is HALF
        assert torch.softmax(ones(3, dtype=HALF), 0, HALF).dtype is HALF


@pytest.mark.parametrize(("one", "other", "result"), [(HALF, HALF, HALF), (HALF, SINGLE, SINGLE)], ids=str)
def test_promoting_ops_run_in_the_widest_dtype(sim, one, other, result):
    with torch.autocast("simgpu", dtype=HALF):
        assert torch.addcmul(ones(3, dtype=one), ones(3, dtype=other), ones(3, dtype=one)).dtype is result
        assert torch.dot(ones(3, dtype=one), ones(3, dtype=other)).dtype is result


def test_float64_and_whole_numbers_are_left_alone(sim):
    with torch.autocast("simgpu"):
        assert (ones(3, 3, dtype=torch.float64) @ ones(3, 3, dtype=torch.float64)).dtype is torch.float64
        assert torch.sum(ones(3, dtype=torch.int32)).dtype is torch.int64


def test_outside_and_in_a_switched_off_region_nothing_is_cast(sim):
    with torch.autocast("simgpu"), torch.autocast("simgpu", enabled=False):
        assert (ones(3, 3) @ ones(3, 3)).dtype is SINGLE
    assert (ones(3, 3) @ ones(3, 3)).dtype is SINGLE


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_runs_in_float16_and_its_gradients_are_the_weights_dtype(sim, layer):
    net = layer(4, 5).to("simgpu")
    with torch.autocast("simgpu", dtype=HALF):
        out, _ = net(ones(6, 2, 4))
    out.float().sum().backward()

    assert out.dtype is HALF
    assert {p.grad.dtype for p in net.parameters()} == {SINGLE}


def test_cross_entropy_of_probabilities_is_refused_with_the_way_out(sim):
    with torch.autocast("simgpu"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
        nn.BCELoss()(ones(3), ones(3))


# --- casts, counted ---------------------------------------------------------------------------------------------


def n_casts(sim) -> int:
    """How many casts with a kernel stand on the tape."""
    return sum(isinstance(e, TapeOp) and e.name == "_to_copy" and bool(e.kernels) for e in sim.tape.entries)


def test_a_weight_is_cast_once_until_the_outermost_region_ends(sim):
    net, x = nn.Linear(4, 4, bias=False).to("simgpu"), ones(2, 4, dtype=HALF)
    with torch.autocast("simgpu"):
        net(x)
        with torch.autocast("simgpu"):
            net(x)
        net(x)
    assert n_casts(sim) == 1
    with torch.autocast("simgpu"):
        net(x)
    assert n_casts(sim) == 2


def test_without_the_cache_each_use_casts(sim):
    net, x = nn.Linear(4, 4).to("simgpu"), ones(2, 4, dtype=HALF)
    with torch.autocast("simgpu", cache_enabled=False):
        net(x)
        net(x)

    assert n_casts(sim) == 4  # weight and bias, twice


def test_a_weight_cast_without_gradients_still_gets_one_later(sim):
    net, x = nn.Linear(4, 4).to("simgpu"), ones(2, 4)
    with torch.autocast("simgpu"):
        with torch.no_grad():
            net(x)
        net(x).sum().backward()

    assert net.weight.grad.tolist() == [[2.0] * 4] * 4


def test_the_cast_weights_memory_is_given_back_after_the_region(sim):
    net = nn.Linear(1024, 1024, bias=False).to("simgpu")
    before = sim.memory.in_use_bytes
    with torch.no_grad(), torch.autocast("simgpu"):
        net(ones(1, 1024))
        assert sim.memory.in_use_bytes - before >= 2 * 1024 * 1024
    assert sim.memory.in_use_bytes == before


@pytest.mark.parametrize("function", [functional.softmax, functional.log_softmax])
def test_a_softmax_of_halves_makes_no_float32_copy_of_them(sim, function):
    x = torch.randn(64, 512).half()
    expected = x.float().requires_grad_()
    function(expected, -1).square().sum().backward()
    on_card = x.to("simgpu").requires_grad_()
    before = sim.memory.in_use_bytes
    with torch.autocast("simgpu"):
        out = function(on_card, -1)
    assert sim.memory.in_use_bytes - before == 4 * 64 * 512
    assert n_casts(sim) == 0
    out.square().sum().backward()

    assert torch.equal(out.detach().cpu(), function(x.float(), -1))
    assert torch.equal(on_card.grad.cpu(), expected.grad.half())


# --- training ---------------------------------------------------------------------------------------------------


def bfloat_losses(device: str) -> list[float]:
    """A few steps of a network whose ops CPU and CUDA cast alike."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    losses = []
    for _ in range(5):
        x, y = torch.randn(4, 6).to(device), torch.randn(4, 3).to(device)
        with torch.autocast(device, dtype=BFLOAT):
            loss = functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def test_where_the_policies_agree_training_equals_the_cpus_autocast():
    expected = bfloat_losses("cpu")
    with simulated_gpu():
        found = bfloat_losses("simgpu")

    assert found == expected
    assert len(set(expected)) == 5


@pytest.mark.parametrize("fused", [False, True])
def test_loss_scaling_skips_the_step_that_overflows_and_halves_the_scale(sim, fused):
    net = nn.Linear(2, 1, bias=False).to("simgpu")
    opt = torch.optim.AdamW(net.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("simgpu", init_scale=1024.0)
    before = net.weight.tolist()
    for factor, changes in ((torch.inf, False), (1.0, True)):
        with torch.autocast("simgpu"):
            loss = net(ones(1, 2)).sum()
        opt.zero_grad()
        scaler.scale(loss * factor).backward()
        scaler.step(opt)
        scaler.update()
        assert (net.weight.tolist() != before) is changes
    assert scaler.get_scale() == 512.0


def test_unscaled_gradients_are_clipped_to_the_norm(sim):
    net = nn.Linear(4, 1, bias=False).to("simgpu")
    opt, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.simgpu.amp.GradScaler(init_scale=256.0)
    with torch.simgpu.amp.autocast():
        loss = net(ones(1, 4)).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)

    assert norm.item() == 2.0  # four ones
    assert torch.linalg.vector_norm(net.weight.grad).item() == pytest.approx(1.0, rel=1e-5)


class Doubles(torch.autograd.Function):
    """A function of the reader's own that wants float32."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="simgpu", cast_inputs=SINGLE)
    def forward(ctx, x):
        Doubles.seen = x.dtype, torch.is_autocast_enabled("simgpu")
        return x * 2

    @staticmethod
    @torch.amp.custom_bwd(device_type="simgpu")
    def backward(ctx, g):
        return g * 2


def test_a_function_of_ones_own_gets_its_inputs_cast_and_runs_without_autocast(sim):
    x = ones(3, dtype=HALF).requires_grad_()
    with torch.autocast("simgpu"):
        Doubles.apply(x).sum().backward()

    assert Doubles.seen == (SINGLE, False)
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_autocast_counts_the_same_with_numerics_off():
    def entries(numerics: bool) -> list[TapeOp]:
        with simulated_gpu(numerics=numerics) as session:
            net = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.Linear(64, 8)).to("simgpu")
            with torch.autocast("simgpu"):
                loss = net(torch.zeros(4, 32, device="simgpu")).square().mean()
            loss.backward()
            return [e for e in session.tape.entries if isinstance(e, TapeOp) and e.kernels]

    assert entries(True) == entries(False)


def test_the_amp_module_can_be_imported(sim):
    from torch.simgpu import amp  # the module that registering made

    assert amp.autocast is torch.simgpu.amp.autocast
