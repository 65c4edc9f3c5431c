"""Compiled code on the simulated GPU: the same numbers, fewer kernels, cheaper launches, a first call that costs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gpututor.errors import GraphBreak
from gpututor.model.tape import GraphReplay, HostWork, TapeOp
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.compiling.guards import COMPILE_BASE_NS, MOST_VERSIONS
from gpututor.timeline import Activity


class Net(nn.Module):
    """Products, a norm, elementwise work and dropout: 7 operators that launch kernels forward."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.norm, self.drop = nn.Linear(8, 16), nn.Linear(16, 4), nn.LayerNorm(16), nn.Dropout(0.5)

    def forward(self, x):
        h = nn.functional.gelu(self.one(x) * 2 + 1)
        return self.two(self.drop(self.norm(h)))


def entries_of(sim, work):
    """What `work()` writes on the tape."""
    first = len(sim.tape.entries)
    work()
    return sim.tape.entries[first:]


def kernels(entries, phase=None):
    """Names of the kernels of these entries, all or those of one phase."""
    ops = [e for e in entries if isinstance(e, TapeOp) and phase in (None, e.phase)]
    return [k.name for op in ops for k in op.kernels]


def calls(entries):
    return [e.phase for e in entries if isinstance(e, TapeOp) and e.name == "compiled call"]


def compilations(entries):
    return [e.long_ns for e in entries if isinstance(e, HostWork) and e.name == "torch.compile"]


def train(compiled, n_steps=3, **options):
    torch.manual_seed(0)
    net = Net().to("simgpu")
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    call = torch.compile(net, **options) if compiled else net
    losses = []
    for k in range(n_steps):
        opt.zero_grad()
        loss = call(torch.full((3, 8), 0.1 * (k + 1), device="simgpu")).square().sum()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_compiled_training_gives_the_same_losses(mode):
    with simulated_gpu():
        eager = train(compiled=False, n_steps=5)
    with simulated_gpu():
        assert train(compiled=True, n_steps=5, mode=mode) == eager


@pytest.mark.parametrize("numerics", [True, False])
def test_a_chain_of_elementwise_ops_is_one_kernel(numerics):
    @torch.compile
    def chain(x):
        return (x.sin() + 1).exp() * 2

    with simulated_gpu(numerics=numerics) as sim:
        x = torch.ones(1 << 20, device="simgpu")
        entries = entries_of(sim, lambda: chain(x))
    (op,) = (e for e in entries if isinstance(e, TapeOp) and e.kernels)

    assert [k.moved_bytes for k in op.kernels] == [2 * (4 << 20)]


def test_products_stay_and_what_lies_between_them_is_joined():
    with simulated_gpu() as sim:
        net = torch.compile(Net().to("simgpu"))
        x = torch.ones(3, 8, device="simgpu")
        found = kernels(entries_of(sim, lambda: net(x)))

    assert found[0] == found[-1] == "addmm"
    assert len(found) == 3


def test_the_backward_is_compiled_too_and_ends_with_the_engine():
    with simulated_gpu() as sim:
        net = Net().to("simgpu")
        x = torch.ones(3, 8, device="simgpu")
        loss = torch.compile(net)(x).sum()
        entries = entries_of(sim, loss.backward)
        after = entries_of(sim, lambda: x * 2)

        assert calls(entries) == ["compiled_backward"]
        assert kernels(after) == ["mul"]
        assert sim.watch is None


def test_what_lies_outside_of_the_region_is_not_compiled():
    with simulated_gpu() as sim:
        before, inside, after = (nn.Linear(8, 8).to("simgpu") for _ in range(3))
        x = torch.ones(3, 8, device="simgpu")
        middle = torch.compile(inside)
        loss = after(middle(before(x)))
        entries = entries_of(sim, loss.sum().backward)
    phases = [e.phase for e in entries if isinstance(e, TapeOp) and e.name == "mm"]

    assert phases == ["backward", "backward", "compiled_backward", "compiled_backward", "backward"]


def test_the_first_call_is_start_up_and_the_next_is_not():
    with simulated_gpu() as sim:
        net = torch.compile(Net().to("simgpu"))
        x = torch.ones(3, 8, device="simgpu")
        first = compilations(entries_of(sim, lambda: net(x)))
        again = compilations(entries_of(sim, lambda: net(x)))
        startup = sum(s.duration_ns for s in sim.timeline().on(Activity.STARTUP) if s.name == "torch.compile")

    assert [len(first), len(again)] == [1, 0]
    assert startup == first[0] > COMPILE_BASE_NS


def test_a_second_size_compiles_again_and_a_third_is_covered_by_that():
    with simulated_gpu() as sim:
        net = torch.compile(Net().to("simgpu"))
        n = [
            len(compilations(entries_of(sim, lambda size=size: net(torch.ones(size, 8, device="simgpu")))))
            for size in (3, 4, 5, 6)
        ]

    assert n == [1, 1, 0, 0]


def test_with_dynamic_off_every_size_compiles_until_torch_gives_up():
    with simulated_gpu() as sim:
        net = torch.compile(Net().to("simgpu"), dynamic=False)
        per_size = [
            entries_of(sim, lambda size=size: net(torch.ones(size, 8, device="simgpu")))
            for size in range(2, 2 + MOST_VERSIONS + 1)
        ]

    assert [len(compilations(e)) for e in per_size] == [1] * MOST_VERSIONS + [0]
    assert calls(per_size[-1]) == []


def test_a_marked_dimension_never_compiles_again():
    with simulated_gpu() as sim:
        net = torch.compile(Net().to("simgpu"))
        marked = torch.ones(3, 8, device="simgpu")
        marked._dynamo_dynamic_indices = {0}  # what torch._dynamo.mark_dynamic(marked, 0) leaves
        entries_of(sim, lambda: net(marked))

        assert compilations(entries_of(sim, lambda: net(torch.ones(7, 8, device="simgpu")))) == []


def test_a_value_read_by_the_host_breaks_the_graph_in_two():
    @torch.compile
    def reads(x):
        y = x * 2 + 1
        return y * y.sum().item()

    with simulated_gpu() as sim:
        x = torch.ones(4, device="simgpu")
        entries = entries_of(sim, lambda: reads(x))

    assert calls(entries) == ["compiled", "compiled"]


def test_a_recurrent_layer_breaks_the_graph_and_runs_as_it_is():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(4, 4)

        def forward(self, x):
            return self.gru(x * 2)[0] + 1

    with simulated_gpu() as sim:
        net = torch.compile(Reader().to("simgpu"))
        x = torch.ones(3, 1, 4, device="simgpu")
        entries = entries_of(sim, lambda: net(x))
    phases = {e.name: e.phase for e in entries if isinstance(e, TapeOp) and e.kernels}

    assert phases["rnn.forward"] == "forward"
    assert len(calls(entries)) == 2


def test_fullgraph_refuses_a_break():
    @torch.compile(fullgraph=True)
    def reads(x):
        return x * x.sum().item()

    with simulated_gpu() as sim, pytest.raises(GraphBreak, match="item"):
        reads(torch.ones(4, device="simgpu"))
    assert sim.watch is None


def test_reduce_overhead_replays_one_graph_each_way_from_the_third_call_on():
    with simulated_gpu() as sim:
        net = torch.compile(Net().to("simgpu"), mode="reduce-overhead")
        x = torch.ones(3, 8, device="simgpu")
        n = [
            sum(isinstance(e, GraphReplay) for e in entries_of(sim, lambda: net(x).sum().backward())) for _ in range(4)
        ]

    assert n[0] == 0
    assert n[2] == n[3] == 2


def test_a_compiled_step_launches_cheaper_than_an_eager_one():
    def host_ns(compiled):
        with simulated_gpu() as sim:
            net = Net().to("simgpu")
            call = torch.compile(net) if compiled else net
            x = torch.ones(3, 8, device="simgpu")
            call(x)
            before = sim.host_ns
            call(x)
            return sim.host_ns - before

    assert host_ns(compiled=True) < host_ns(compiled=False)


def test_a_compiled_optimizer_updates_each_list_once():
    with simulated_gpu() as sim:
        net = Net().to("simgpu")
        opt = torch.optim.Adam(net.parameters(), lr=0.01)
        net(torch.ones(3, 8, device="simgpu")).sum().backward()
        eager = kernels(entries_of(sim, opt.step))
        step = torch.compile(opt.step)
        step()
        compiled = kernels(entries_of(sim, step))

    assert 0 < len(compiled) < len(eager)


def test_compiled_inside_a_captured_graph_is_part_of_it():
    with simulated_gpu() as sim:
        net = torch.compile(Net().to("simgpu"))
        x = torch.ones(3, 8, device="simgpu")
        with torch.no_grad():
            net(x)
            graph = torch.simgpu.CUDAGraph()
            with torch.simgpu.graph(graph):
                out = net(x)
        (replay,) = entries_of(sim, graph.replay)

    assert out.shape == (3, 4)
    assert [n.phase for n in replay.nodes] == ["compiled"] * 3


def test_a_compiled_module_has_the_modules_own_state_and_attributes():
    with simulated_gpu():
        net = Net().to("simgpu")
        compiled = torch.compile(net)

        assert list(compiled.state_dict()) == [f"_orig_mod.{name}" for name in net.state_dict()]
        assert compiled.norm is net.norm
        assert not compiled.eval().drop.training


def test_inference_mode_is_compiled_as_no_grad_is():
    def found(mode):
        with simulated_gpu() as sim:
            net = Net().to("simgpu").eval()
            net.drop = nn.Identity()
            net = torch.compile(net)
            with mode():
                x = torch.ones(3, 8, device="simgpu")
                return kernels(entries_of(sim, lambda: net(x)))

    assert found(torch.inference_mode) == found(torch.no_grad)


def test_compiled_code_lets_go_of_what_the_same_code_lets_go_of():
    def chain(x):
        for _ in range(8):
            x = (x @ x).relu()
        return x

    def most_bytes(function):
        with simulated_gpu(numerics=False), torch.no_grad():
            function(torch.ones(512, 512, device="simgpu"))
            return torch.simgpu.max_memory_allocated()

    with simulated_gpu(numerics=False):
        compiled = torch.compile(chain)
    assert most_bytes(compiled) == most_bytes(chain) + 512 * 512 * 4  # its caller holds the input


def test_what_a_batched_product_of_more_dimensions_is_made_of_is_not_dropped():
    def attention(q, k, v):
        shares = torch.softmax(torch.matmul(q, k.transpose(-1, -2)), -1)
        return torch.matmul(shares, v).permute(0, 2, 1, 3).contiguous()

    with simulated_gpu(numerics=False) as sim, torch.no_grad():
        x = torch.ones(2, 4, 16, 16, device="simgpu")
        found = kernels(entries_of(sim, lambda: torch.compile(attention)(x, x, x)))

    assert found.count("bmm") == 2


def test_an_error_inside_leaves_the_session_as_it_was():
    @torch.compile
    def bad(x):
        return x @ torch.ones(3, device=x.device)

    with simulated_gpu() as sim:
        with pytest.raises(RuntimeError, match="size"):
            bad(torch.ones(4, device="simgpu"))

        assert sim.watch is None
