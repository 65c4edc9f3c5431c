"""CUDA graphs: a capture runs nothing, a replay is one launch, and its numbers are those of the ops themselves."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn

from gpututor.model.queue import GRAPH_GAP_NS
from gpututor.model.tape import GraphReplay
from gpututor.simgpu import simulated_gpu
from gpututor.timeline import Activity

BATCHES = [torch.full((3, 8), 0.1 * (k + 1)) for k in range(6)]


def make(dropout=0.5):
    """A small network with a random and a normalising layer, and an optimizer that may be captured."""
    torch.manual_seed(0)
    layers = [nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(dropout), nn.Linear(16, 4)]
    net = nn.Sequential(*layers).to("simgpu")
    return net, torch.optim.Adam(net.parameters(), lr=0.01, capturable=True)


def step(net, opt, x):
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
    return loss


def captured(net, opt, x, losses):
    """Three steps to warm up in a stream of their own, then one captured; gives the graph and its loss."""
    side = torch.simgpu.Stream()
    side.wait_stream(torch.simgpu.current_stream())
    with torch.simgpu.stream(side):
        for batch in BATCHES[:3]:
            x.copy_(batch)
            losses.append(step(net, opt, x).item())
    torch.simgpu.current_stream().wait_stream(side)
    graph = torch.simgpu.CUDAGraph()
    opt.zero_grad()
    with torch.simgpu.graph(graph):
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
    return graph, loss


def doubled(n_ops):
    """A graph of so many multiplications, its input and its result."""
    x = torch.ones(4, device="simgpu")
    graph = torch.simgpu.CUDAGraph()
    with torch.simgpu.graph(graph):
        y = x
        for _ in range(n_ops):
            y = y * 2
    return graph, x, y


def test_a_whole_training_step_replayed_gives_the_losses_of_the_steps_themselves():
    with simulated_gpu():
        net, opt = make()
        expected = [step(net, opt, batch.to("simgpu")).item() for batch in BATCHES]
    losses = []
    with simulated_gpu():
        net, opt = make()
        x = torch.zeros(3, 8, device="simgpu")
        graph, loss = captured(net, opt, x, losses)
        for batch in BATCHES[3:]:
            x.copy_(batch)
            graph.replay()
            losses.append(loss.item())

    assert losses == expected


def test_a_capture_changes_nothing_that_was_there():
    with simulated_gpu():
        net, opt = make()
        x = torch.zeros(3, 8, device="simgpu")
        before_steps = []
        side = torch.simgpu.Stream()
        with torch.simgpu.stream(side):
            step(net, opt, x)
        weights = [p.tolist() for p in net.parameters()]
        numbers = torch.get_rng_state()
        opt.zero_grad()
        with torch.simgpu.graph(torch.simgpu.CUDAGraph()):
            before_steps.append(net(x).sum())
            before_steps[0].backward()
            opt.step()

        assert [p.tolist() for p in net.parameters()] == weights
        assert torch.equal(torch.get_rng_state(), numbers)


def test_a_recurrent_layer_replays_forward_and_backward():
    torch.manual_seed(0)
    rnn = nn.GRU(4, 4)
    x = torch.full((3, 1, 4), 0.3)
    rnn(x)[0].sum().backward()
    expected = rnn.weight_hh_l0.grad
    with simulated_gpu():
        torch.manual_seed(0)
        rnn = nn.GRU(4, 4).to("simgpu")
        static = torch.zeros(3, 1, 4, device="simgpu")
        graph = torch.simgpu.CUDAGraph()
        with torch.simgpu.graph(graph):
            rnn(static)[0].sum().backward()
        static.copy_(x)
        graph.replay()

        assert torch.equal(rnn.weight_hh_l0.grad.cpu(), expected)


@pytest.mark.parametrize("numerics", [True, False])
def test_a_capture_launches_nothing_and_a_replay_once(numerics):
    with simulated_gpu(numerics=numerics) as sim:
        queue = sim.player.queue
        torch.ones(4, device="simgpu")
        before = queue.n_launches
        graph, _, _ = doubled(5)
        in_capture = queue.n_launches - before - 1  # the tensor it works on was filled
        graph.replay()

        assert (in_capture, queue.n_launches - before - 1) == (0, 1)


def test_a_replays_kernels_follow_each_other_closer_than_a_streams():
    with simulated_gpu() as sim:
        graph, _, _ = doubled(5)
        torch.simgpu.synchronize()
        sim.begin_step()
        graph.replay()
        torch.simgpu.synchronize()
        sim.end_run()
        timeline = sim.timeline()
    (launch,) = (s for s in timeline.on(Activity.LAUNCH) if s.name == "graph replay")
    kernels = [s for s in timeline.on(Activity.KERNEL) if s.launch == launch.launch]
    gaps = {b.start_ns - a.end_ns for a, b in pairwise(kernels)}

    assert len(kernels) == 5
    assert gaps == {GRAPH_GAP_NS}


def test_a_replay_costs_the_host_less_than_its_ops():
    with simulated_gpu() as sim:
        graph, x, _ = doubled(20)
        before = sim.host_ns
        for _ in range(20):
            x * 2
        eager_ns, before = sim.host_ns - before, sim.host_ns
        graph.replay()

        assert sim.host_ns - before < eager_ns / 10


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        pytest.param(lambda x: x.sum().item(), "not permitted when stream is capturing", id="item"),
        pytest.param(lambda x: torch.simgpu.synchronize(), "not permitted when stream is capturing", id="synchronize"),
        pytest.param(lambda x: x[x > 0], "not permitted when stream is capturing", id="mask"),
        pytest.param(lambda x: x.copy_(torch.zeros(4)), "unless the CPU tensor is pinned", id="pageable copy"),
    ],
)
def test_what_waits_is_refused_in_a_capture_as_cuda_does(wait, words):
    with simulated_gpu() as sim:
        x = torch.ones(4, device="simgpu")
        with pytest.raises(RuntimeError, match=words), torch.simgpu.graph(torch.simgpu.CUDAGraph()):
            wait(x)

        assert not torch.simgpu.is_current_stream_capturing()
        assert sim.watch is None
        assert (x + 1).tolist() == [2, 2, 2, 2]


def test_the_default_stream_is_refused_as_cuda_does():
    with simulated_gpu(), pytest.raises(RuntimeError, match="non-default stream"):
        torch.simgpu.CUDAGraph().capture_begin()


def test_an_optimizer_that_may_not_be_captured_is_refused_by_torch():
    with simulated_gpu():
        net, _ = make()
        opt = torch.optim.Adam(net.parameters())
        side = torch.simgpu.Stream()
        with torch.simgpu.stream(side):
            step(net, opt, torch.zeros(3, 8, device="simgpu"))
        with pytest.raises(RuntimeError, match="capturable is False"), torch.simgpu.graph(torch.simgpu.CUDAGraph()):
            opt.step()


def test_a_pinned_copy_is_part_of_the_graph():
    with simulated_gpu() as sim:
        source, x = torch.ones(4).pin_memory(), torch.zeros(4, device="simgpu")
        graph = torch.simgpu.CUDAGraph()
        with torch.simgpu.graph(graph):
            x.copy_(source, non_blocking=True)
        source.fill_(7)
        graph.replay()
        timeline = sim.timeline()

        assert x.tolist() == [7, 7, 7, 7]
        assert sum(1 for _ in timeline.on(Activity.COPY_TO_GPU)) == 1


def test_an_empty_graph_can_not_be_replayed_unseen():
    with simulated_gpu():
        with pytest.raises(RuntimeError, match="without a preceding successful capture"):
            torch.simgpu.CUDAGraph().replay()
        with pytest.warns(UserWarning, match="CUDA Graph is empty"), torch.simgpu.graph(torch.simgpu.CUDAGraph()):
            pass


def test_a_graphs_memory_serves_nothing_else_until_it_is_gone():
    mib = 1 << 20
    with simulated_gpu(numerics=False) as sim:
        graph = torch.simgpu.CUDAGraph()
        x = torch.ones(64 * mib // 4, device="simgpu")
        with torch.simgpu.graph(graph):
            x * 2
        torch.simgpu.empty_cache()
        with_graph = torch.simgpu.memory_reserved()
        other = torch.empty(64 * mib // 4, device="simgpu")
        grown = torch.simgpu.memory_reserved() - with_graph
        graph.reset()
        torch.simgpu.empty_cache()

        assert grown == 64 * mib
        assert torch.simgpu.memory_reserved() == with_graph
        assert sim.memory.in_use_bytes == x.numel() * 4 + other.numel() * 4


def test_graphed_callables_train_like_the_module_itself():
    def losses(graphed):
        with simulated_gpu():
            net, opt = make(dropout=0.0)
            if graphed:
                net = torch.simgpu.make_graphed_callables(net, (torch.zeros(3, 8, device="simgpu"),))
            return [step(net, opt, batch.to("simgpu")).item() for batch in BATCHES]

    assert losses(graphed=True) == losses(graphed=False)


def test_graphed_callables_replay_once_each_way():
    with simulated_gpu() as sim:
        net, _ = make(dropout=0.0)
        x = torch.zeros(3, 8, device="simgpu")
        net = torch.simgpu.make_graphed_callables(net, (x,))
        first = len(sim.tape.entries)
        net(x).sum().backward()

        assert sum(isinstance(e, GraphReplay) for e in sim.tape.entries[first:]) == 2
