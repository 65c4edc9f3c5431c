"""Sparse gradients and tensors: the CPU's values, torch's own layout, accounted by the rows touched."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import nn

from gpututor.errors import NumericsOff
from gpututor.model.tape import CopyCall, Sync, TapeOp
from gpututor.simgpu import simulated_gpu

ON = "simgpu"
N_WORDS = 50
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled:UserWarning")


@pytest.fixture
def sim():
    with simulated_gpu() as session:
        yield session


def drawn(device: str = ON) -> torch.Tensor:
    """A 3 by 4 tensor with three entries, two of them in one place."""
    places = torch.tensor([[0, 2, 0], [1, 0, 1]])
    return torch.sparse_coo_tensor(places, torch.tensor([1.0, 2.0, 3.0]), (3, 4)).to(device)


DENSE = [[0.0, 4.0, 0.0, 0.0], [0.0] * 4, [2.0, 0.0, 0.0, 0.0]]

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "embedding": lambda: nn.Embedding(N_WORDS, 4, sparse=True),
    "with padding": lambda: nn.Embedding(N_WORDS, 4, sparse=True, padding_idx=1),
    "bag, summed": lambda: nn.EmbeddingBag(N_WORDS, 4, sparse=True, mode="sum"),
    "bag, mean": lambda: nn.EmbeddingBag(N_WORDS, 4, sparse=True),
}
OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd, momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd, momentum, one by one": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
    "sparse adam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


def weights_after(device: str, layer: str, optimizer: str, n_steps: int = 4) -> list[list[float]]:
    """A table trained for a few steps, in each of which it gets gradients twice."""
    torch.manual_seed(0)
    net = LAYERS[layer]().to(device)
    opt = OPTIMIZERS[optimizer](list(net.parameters()))
    for _ in range(n_steps):
        ids = torch.randint(0, N_WORDS, (6, 3)).to(device)
        opt.zero_grad()
        net(ids).square().sum().backward()
        (net(ids) * 2).sum().backward()
        assert net.weight.grad.is_sparse
        opt.step()
    return net.weight.tolist()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_table_trains_to_the_cpus_values(layer, optimizer):
    expected = weights_after("cpu", layer, optimizer)
    with simulated_gpu():
        found = weights_after(ON, layer, optimizer)

    assert found == expected


def test_loss_scaling_unscales_sparse_gradients(sim):
    net = nn.Embedding(4, 2, sparse=True).to(ON)
    opt, scaler = torch.optim.SGD(net.parameters(), lr=1.0), torch.amp.GradScaler(ON, init_scale=8.0)
    before = net.weight.detach().clone()
    scaler.scale(net(torch.tensor([1, 1], device=ON)).sum()).backward()
    scaler.step(opt)

    assert (before - net.weight).round(decimals=4).tolist() == [[0, 0], [2, 2], [0, 0], [0, 0]]


# --- the tensor itself ------------------------------------------------------------------------------------------


def test_it_is_torchs_own_sparse_tensor_on_the_device(sim):
    x = drawn()

    assert (x.layout, x.device.type, x.is_sparse, x._nnz()) == (torch.sparse_coo, ON, True, 3)
    assert x._values().device.type == ON
    assert "device='simgpu:0'" in repr(x)


def test_coalescing_adds_up_what_lies_in_one_place(sim):
    x = drawn().coalesce()

    assert x.indices().tolist() == [[0, 2], [1, 0]]
    assert x.values().tolist() == [4.0, 2.0]


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(lambda x, d: x, id="itself"),
        pytest.param(lambda x, d: x * 2, id="times a number"),
        pytest.param(lambda x, d: x / 4, id="divided"),
        pytest.param(lambda x, d: -x, id="negative"),
        pytest.param(lambda x, d: x + x, id="sum of two"),
        pytest.param(lambda x, d: x.coalesce() * x.coalesce(), id="product of two"),
        pytest.param(lambda x, d: x.clone().mul_(3), id="in place"),
        pytest.param(lambda x, d: x.clone().add_(x), id="sum in place"),
        pytest.param(lambda x, d: torch.zeros_like(x), id="zeros like"),
        pytest.param(lambda x, d: x.t(), id="transposed"),
        pytest.param(lambda x, d: x.index_select(0, torch.tensor([2], device=d)), id="a row"),
        pytest.param(lambda x, d: x.coalesce().sqrt(), id="root"),
        pytest.param(lambda x, d: torch.ones(3, 4, device=d) + x, id="dense and sparse"),
        pytest.param(lambda x, d: torch.ones(3, 4, device=d).add_(x, alpha=-2), id="into a dense one"),
        pytest.param(lambda x, d: torch.sparse.mm(x, torch.ones(4, 2, device=d)), id="sparse times dense"),
        pytest.param(lambda x, d: torch.ones(3, 4, device=d).sparse_mask(x.coalesce()), id="picked by another"),
        pytest.param(lambda x, d: torch.sparse.softmax(x, 1), id="softmax"),
        pytest.param(lambda x, d: torch.sparse.sum(x, 0), id="sum over rows"),
        pytest.param(lambda x, d: torch.eye(3, device=d).to_sparse(), id="made from a dense one"),
        pytest.param(lambda x, d: x.clone().copy_(x * 5), id="copied into"),
        pytest.param(lambda x, d: x.to(torch.float64), id="another dtype"),
    ],
)
def test_an_op_gives_the_cpus_result(sim, op):
    expected, found = op(drawn("cpu"), "cpu"), op(drawn(), ON)

    assert (found.layout, found.dtype, found.device.type) == (expected.layout, expected.dtype, ON)
    assert found.to_dense().tolist() == expected.to_dense().tolist()


def test_it_goes_to_the_card_and_back(sim):
    back = drawn().cpu()

    assert back.device.type == "cpu"
    assert back.to_dense().tolist() == DENSE


@pytest.mark.parametrize("place", [ON, "cpu"])
def test_it_is_saved_and_loaded(sim, place):
    file = io.BytesIO()
    torch.save(drawn(), file)
    file.seek(0)
    found = torch.load(file, map_location=place)

    assert (found.is_sparse, found.device.type) == (True, place)
    assert found.to_dense().tolist() == DENSE
    assert copy.deepcopy(found).to_dense().tolist() == DENSE


def test_a_product_with_a_sparse_matrix_has_gradients(sim):
    x, y = drawn().coalesce().requires_grad_(), torch.ones(4, 2, device=ON, requires_grad=True)
    torch.sparse.mm(x, y).sum().backward()

    assert y.grad.tolist() == [[2.0, 2.0], [4.0, 4.0], [0.0, 0.0], [0.0, 0.0]]  # the columns' sums
    assert x.grad.to_dense().tolist() == [[0, 2, 0, 0], [0] * 4, [2, 0, 0, 0]]


# --- what it costs ----------------------------------------------------------------------------------------------


def moved_bytes(work: Callable[[], object], sim) -> int:
    """Bytes that the kernels of `work` move."""
    first = len(sim.tape.entries)
    work()
    ops = [e for e in sim.tape.entries[first:] if isinstance(e, TapeOp)]
    return sum(int(k.moved_bytes) for op in ops for k in op.kernels)


def gradient(n_rows: int, n_words: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A table and a gradient that names the first `n_rows` of its rows."""
    rows = torch.arange(n_rows, device=ON)[None]
    made = torch.sparse_coo_tensor(rows, torch.ones(n_rows, width, device=ON), (n_words, width))
    return torch.zeros(n_words, width, device=ON), made


def test_an_update_moves_the_rows_it_names_not_the_table(sim):
    table, g = gradient(10, 100_000, 64)
    row_bytes = 10 * 64 * 4

    # values and rows in, rows out, and ten indices of 8 bytes
    assert moved_bytes(lambda: table.add_(g, alpha=-0.1), sim) == 3 * row_bytes + 80


def test_twice_the_rows_cost_twice_the_bytes_and_a_larger_table_costs_no_more(sim):
    def cost(n_rows: int, n_words: int) -> int:
        table, g = gradient(n_rows, n_words, 64)
        return moved_bytes(lambda: table.add_(g), sim)

    assert cost(20, 1000) == 2 * cost(10, 1000)
    assert cost(10, 50_000) == cost(10, 1000)


def test_a_sparse_gradient_takes_the_memory_of_its_rows(sim):
    net = nn.Embedding(100_000, 64, sparse=True).to(ON)
    before = sim.memory.in_use_bytes
    net(torch.arange(8, device=ON)).sum().backward()

    assert sim.memory.in_use_bytes - before < 100_000  # the table itself is 25.6 MB


def test_coalescing_waits_for_the_card_because_the_host_must_learn_the_count(sim):
    x = drawn()
    first = len(sim.tape.entries)
    x.coalesce()
    names = [k.name for e in sim.tape.entries[first:] if isinstance(e, TapeOp) for k in e.kernels]

    assert Sync("_coalesce", 0) in sim.tape.entries[first:]
    assert "radix sort" in names


def test_both_parts_cross_the_link(sim):
    first = len(sim.tape.entries)
    drawn("cpu").to(ON)
    copies = [e for e in sim.tape.entries[first:] if isinstance(e, CopyCall)]

    assert [(e.to_gpu, e.n_bytes) for e in copies] == [(True, 48), (True, 12)]  # 2 by 3 indices, 3 values


def test_with_numerics_off_a_plain_step_is_followed_and_coalescing_is_refused():
    with simulated_gpu(numerics=False) as session:
        net = nn.Embedding(100_000, 64, sparse=True).to(ON)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.zeros(512, dtype=torch.int64, device=ON)).sum().backward()
        opt.step()
        assert any(isinstance(e, TapeOp) and e.name == "add_" and e.kernels for e in session.tape.entries)
        with pytest.raises(NumericsOff, match="sparse=False"):
            net.weight.grad.coalesce()


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "words"),
    [
        pytest.param(lambda: torch.eye(2, device=ON).to_sparse_csr(), "sparse_coo_tensor", id="to CSR"),
        pytest.param(lambda: drawn().to_sparse_csr(), "sparse_coo_tensor", id="from COO to CSR"),
        pytest.param(lambda: torch.linalg.svd(drawn()), r"_linalg_svd .* x\.to_dense", id="no such op"),
        pytest.param(
            lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device=ON).unbind(),
            "unbind .*torch.jagged",
            id="strided nested",
        ),
        pytest.param(
            lambda: torch.nested.nested_tensor([torch.ones(2, device=ON), torch.ones(3, device=ON)]),
            "torch.jagged",
            id="strided nested from the card",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_what_is_not_there_names_the_op_and_a_way_out(sim, work, words):
    with pytest.raises(NotImplementedError, match=words):
        work()


def test_jagged_nested_tensors_train(sim):
    def gradients(device: str) -> list[list[float]]:
        torch.manual_seed(0)
        net = nn.Linear(4, 2).to(device)
        x = torch.nested.nested_tensor([torch.ones(2, 4), torch.full((3, 4), 2.0)], layout=torch.jagged, device=device)
        net(x).relu().values().square().sum().backward()
        return net.weight.grad.tolist()

    assert gradients(ON) == gradients("cpu")
