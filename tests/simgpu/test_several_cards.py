"""Several cards in one process: copies between them, models across them, DataParallel."""

from __future__ import annotations

import copy

import pytest
import torch

from gpututor.cards import machine
from gpututor.ledger.charge import charge
from gpututor.links import wiring
from gpututor.model.collectives import peer_copy_ns
from gpututor.model.exchange import CardsExchange, PeerCopy, Threads
from gpututor.simgpu import simulated_gpu
from gpututor.timeline import Activity, LaneKind

N = 4


def whole_numbers(*size):
    """Small whole numbers in double precision: sums of them are exact in any order."""
    return torch.randint(-3, 4, size).double()


def small_net():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).double()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(whole_numbers(*p.shape))
    return net, whole_numbers(16, 8)


# --- copies between cards ---------------------------------------------------------------------------------------


def test_a_tensor_moved_to_another_card_keeps_its_numbers_and_lies_there():
    with simulated_gpu("p3.8xlarge") as sim:
        x = torch.arange(6.0).reshape(2, 3)
        there = x.to("simgpu:0").to("simgpu:2")

        assert there.device == torch.device("simgpu", 2)
        assert torch.equal(there.cpu(), x)
        assert sim.memories[2].in_use_bytes > 0


def test_copy_across_cards_writes_in_place():
    with simulated_gpu("p3.8xlarge"):
        target = torch.zeros(3, device="simgpu:1")
        target.copy_(torch.ones(3, device="simgpu:0"))

        assert target.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["p3.8xlarge", "8x-RTX-3090"])
def test_a_copy_between_cards_takes_the_link_and_both_cards(name):
    n_bytes = 4 << 20
    with simulated_gpu(name, numerics=False) as sim:
        torch.ones(1 << 20, device="simgpu:0").to("simgpu:1")
        timeline = sim.timeline()

    spans = list(timeline.on(Activity.TRANSFER))
    assert [(timeline.lanes[s.lane].kind, timeline.lanes[s.lane].device) for s in spans] == [
        (LaneKind.LINK, 0),
        (LaneKind.LINK, 1),
    ]
    assert {s.duration_ns for s in spans} == {peer_copy_ns(n_bytes, wiring(machine(name)).cards)}


def test_both_cards_wait_for_a_copy_between_them_and_the_host_does_not():
    with simulated_gpu("p3.8xlarge", numerics=False) as sim:
        x = torch.ones(1 << 26, device="simgpu:0")
        y = x.to("simgpu:1")
        after_call = sim.host_ns
        y * 2
        timeline = sim.timeline()

    copied = next(iter(timeline.on(Activity.TRANSFER)))
    starts = [s.start_ns for s in timeline.on(Activity.KERNEL) if timeline.lanes[s.lane].device == 1]
    assert max(starts) >= copied.end_ns
    assert after_call < copied.end_ns


def test_a_model_on_two_cards_has_the_cpus_gradients():
    torch.manual_seed(0)
    a, b, x = torch.nn.Linear(4, 5), torch.nn.Linear(5, 2), torch.randn(3, 4)
    b(torch.tanh(a(x))).sum().backward()
    expected = [p.grad.clone() for p in (*a.parameters(), *b.parameters())]
    with simulated_gpu("p3.8xlarge"):
        a2, b2 = copy.deepcopy(a).to("simgpu:0"), copy.deepcopy(b).to("simgpu:3")
        a2.zero_grad()
        b2.zero_grad()
        b2(torch.tanh(a2(x.to("simgpu:0"))).to("simgpu:3")).sum().backward()
        found = [p.grad.cpu() for p in (*a2.parameters(), *b2.parameters())]

    assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True))


def test_a_card_that_only_another_machine_had_is_refused():
    with simulated_gpu("p3.8xlarge"):
        torch.ones(2, device="simgpu:1")
    with simulated_gpu("p3.2xlarge"), pytest.raises(RuntimeError, match="no simulated GPU 1"):
        torch.ones(2, device="simgpu:1")


# --- DataParallel -----------------------------------------------------------------------------------------------


def test_data_parallel_gives_the_outputs_and_gradients_of_one_device():
    net, x = small_net()
    y = net(x)
    y.square().sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    with simulated_gpu("p3.8xlarge"):
        twin = copy.deepcopy(net)
        twin.zero_grad()
        parallel = torch.nn.DataParallel(twin.to("simgpu"))
        out = parallel(x.to("simgpu"))
        out.square().sum().backward()

        assert torch.equal(out.cpu(), y.detach())
        assert all(torch.equal(p.grad.cpu(), e) for p, e in zip(parallel.parameters(), expected, strict=True))


def data_parallel_entries(n_steps=1):
    """The tape of so many steps of DataParallel on four cards."""
    net, x = small_net()
    with simulated_gpu("p3.8xlarge") as sim:
        parallel = torch.nn.DataParallel(net.to("simgpu"))
        x = x.to("simgpu")
        first = len(sim.tape.entries)
        for _ in range(n_steps):
            parallel(x).sum().backward()
        sim.tape.entries = sim.tape.entries[first:]
        return sim.tape, sim.timeline()


def test_data_parallel_broadcasts_the_parameters_every_step_and_reduces_the_gradients():
    tape, _ = data_parallel_entries(n_steps=2)

    kinds = [e.kind for e in tape.entries if isinstance(e, CardsExchange)]
    assert kinds == ["broadcast", "reduce"] * 2
    n_parameters = 8 * 16 + 16 + 16 * 4 + 4
    assert {e.n_bytes for e in tape.entries if isinstance(e, CardsExchange)} == {8 * n_parameters}


def test_data_parallel_gathers_on_the_first_card():
    tape, _ = data_parallel_entries()

    gathered = [(e.source, e.target) for e in tape.entries if isinstance(e, PeerCopy) and e.phase != "backward"]
    assert gathered[-3:] == [(1, 0), (2, 0), (3, 0)]


def test_threads_that_share_the_interpreter_take_turns_for_its_part():
    tape, timeline = data_parallel_entries()

    assert [e.interpreter for e in tape.entries if isinstance(e, Threads) and e.cards] == [True, False]
    lanes = {timeline.lanes[s.lane].name for s in timeline.on(Activity.LAUNCH)}
    assert {f"thread of GPU {k}" for k in range(N)} <= lanes
    assert {f"autograd thread of GPU {k}" for k in range(N)} <= lanes


def test_every_card_has_a_ledger_that_adds_up():
    _, timeline = data_parallel_entries()

    for k in range(N):
        ledger = charge(timeline, device=k)
        assert sum(ledger.charged_ns.values()) == timeline.duration_ns


def test_the_same_data_parallel_run_gives_the_same_timeline():
    assert data_parallel_entries()[1] == data_parallel_entries()[1]
