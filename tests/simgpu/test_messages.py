"""Messages between simulated ranks: dist.send and dist.recv, real numbers, virtual time."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from gpututor.cards import machine
from gpututor.errors import RankFailed, RanksDisagree
from gpututor.links import wiring
from gpututor.model.collectives import Team, exchange_ns, sent_share
from gpututor.simgpu.cards.distributed import launch, tape_ranks
from gpututor.timeline import Activity

MACHINE = "p3.8xlarge"
MIB = 2**20


def device():
    return torch.device("simgpu", torch.simgpu.current_device())


def test_a_message_holds_what_the_tensor_held_when_it_was_sent():
    def run(rank):
        dist.init_process_group("nccl")
        x = torch.full((3,), float(rank + 5), device=device())
        if rank == 0:
            dist.send(x, 1)
            x.zero_()
        else:
            assert dist.recv(x, src=0) == 0
        return x.tolist()

    assert launch(run, MACHINE, 2).results == [[0.0] * 3, [5.0] * 3]


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_messages_go_round_a_ring(backend):
    def run(rank):
        dist.init_process_group(backend)
        where = device() if backend == "nccl" else "cpu"
        mine, theirs = torch.full((4,), float(rank), device=where), torch.zeros(4, device=where)
        ops = [dist.P2POp(dist.isend, mine, (rank + 1) % 3), dist.P2POp(dist.irecv, theirs, (rank - 1) % 3)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return theirs[0].item()

    assert launch(run, MACHINE, 3).results == [2.0, 0.0, 1.0]


def test_messages_of_one_pair_arrive_in_the_order_of_their_sending():
    def run(rank):
        dist.init_process_group("nccl")
        numbers = [torch.full((1,), float(k), device=device()) for k in range(3)]
        if rank == 1:
            for x in numbers:
                dist.send(x, 0)
            return None
        got = [torch.zeros(1, device=device()) for _ in numbers]
        for x in got:
            dist.recv(x, 1)
        return [x.item() for x in got]

    assert launch(run, MACHINE, 2).results[0] == [0.0, 1.0, 2.0]


def test_a_message_in_a_group_goes_to_the_rank_of_that_group():
    def run(rank):
        dist.init_process_group("nccl")
        pair = dist.new_group([1, 2])
        x = torch.full((1,), float(rank), device=device())
        if rank == 1:
            dist.send(x, group=pair, group_dst=1)
        if rank == 2:
            dist.recv(x, group=pair, group_src=0)
        return x.item()

    assert launch(run, MACHINE, 3).results == [0.0, 1.0, 1.0]


def test_a_pipelines_gradient_is_that_of_the_whole_network():
    def parts():
        torch.manual_seed(0)
        return torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

    def run(rank):
        dist.init_process_group("nccl")
        part, x = parts()[rank].to(device()), torch.ones(2, 4, device=device())
        if rank == 0:
            middle = part(x)
            dist.send(middle.detach(), 1)
            grad = torch.empty_like(middle)
            dist.recv(grad, 1)
            middle.backward(grad)
        else:
            middle = torch.empty(2, 4, device=device())
            dist.recv(middle, 0)
            part(middle.requires_grad_()).sum().backward()
            dist.send(middle.grad, 0)
        return part.weight.grad.tolist()

    first, second = parts()
    second(first(torch.ones(2, 4))).sum().backward()
    assert launch(run, MACHINE, 2).results == [first.weight.grad.tolist(), second.weight.grad.tolist()]


# --- time -------------------------------------------------------------------------------------------------------


def sending(n_bytes, n_matmuls=0):
    """A step in which rank 0 sends to rank 1, after some work of its own."""

    def make(rank):
        x, a = torch.zeros(n_bytes, dtype=torch.uint8, device=device()), torch.ones(2048, 2048, device=device())

        def step(_):
            if rank == 0:
                for _ in range(n_matmuls):
                    a @ a
                dist.send(x, 1)
            else:
                dist.recv(x, 0)

        return step

    return tape_ranks(make, MACHINE, 2, n_steps=1, warmup=1, numerics=False)


def spans_of(timeline, name, rank):
    return [s for s in timeline.spans if s.name == name and timeline.lanes[s.lane].device == rank]


@pytest.mark.parametrize("n_bytes", [MIB, 64 * MIB])
def test_a_message_takes_what_the_link_needs_for_its_bytes(n_bytes):
    timeline = sending(n_bytes).price(machine(MACHINE))
    wanted_ns = exchange_ns("send", n_bytes, Team(2, 1, wiring(machine(MACHINE), None)))

    lengths = [
        {s.end_ns - s.start_ns for s in spans_of(timeline, name, rank) if s.activity is Activity.COLLECTIVE}
        for rank, name in enumerate(("send", "receive"))
    ]
    assert lengths == [{wanted_ns}, {wanted_ns}]


def test_the_receiver_waits_until_the_sender_comes():
    def waits_ns(n_matmuls):
        timeline = sending(MIB, n_matmuls).price(machine(MACHINE))
        return sum(s.end_ns - s.start_ns for s in spans_of(timeline, "receive, waiting", 1))

    assert waits_ns(40) > waits_ns(4) + 1_000_000


def test_a_sender_is_done_before_a_late_receiver_comes():
    def run(rank):
        dist.init_process_group("nccl")
        x, a = torch.zeros(8, device=device()), torch.ones(4096, 4096, device=device())
        if rank == 0:
            dist.send(x, 1)
            torch.simgpu.synchronize()
        else:
            for _ in range(20):
                a @ a
            dist.recv(x, 0)
            torch.simgpu.synchronize()

    sessions = launch(run, MACHINE, 2, numerics=False).sessions
    assert sessions[0].host_ns < sessions[1].host_ns / 2


def test_only_the_sender_puts_bytes_on_the_link():
    assert (sent_share("send", 2), sent_share("receive", 2)) == (1.0, 0.0)


def test_a_clock_of_a_rank_that_receives_is_that_of_its_timeline():
    def run(rank):
        dist.init_process_group("nccl")
        x = torch.zeros(MIB, device=device())
        if rank:
            dist.recv(x, rank - 1)
        if rank < 2:
            dist.send(x, rank + 1)
        torch.simgpu.synchronize()

    done = launch(run, MACHINE, 3, numerics=False)
    ends = [max(s.end_ns for s in done.timeline().spans if done.timeline().lanes[s.lane].device == k) for k in range(3)]
    assert [s.host_ns for s in done.sessions] == ends


# --- what can't be ----------------------------------------------------------------------------------------------


def test_a_message_of_another_size_than_asked_for_is_refused():
    def run(rank):
        dist.init_process_group("nccl")
        x = torch.zeros(2 + rank, device=device())
        dist.recv(x, 0) if rank else dist.send(x, 1)

    with pytest.raises(RankFailed, match="rank 0 sends 8 bytes and rank 1 receives 12"):
        launch(run, MACHINE, 2)


def test_ranks_that_both_receive_first_are_told_so():
    def run(rank):
        dist.init_process_group("nccl")
        x = torch.zeros(2, device=device())
        dist.recv(x, 1 - rank)
        dist.send(x, 1 - rank)

    with pytest.raises(RanksDisagree, match=r"rank 0 waits in receive from rank 1 .*let sends come first"):
        launch(run, MACHINE, 2)


def test_a_message_needs_ranks_that_really_run():
    def run(rank):
        dist.init_process_group("nccl")
        dist.send(torch.zeros(1, device=device()), 1)

    with pytest.raises(RankFailed, match="launch without in_step"):
        launch(run, MACHINE, 2, in_step=True)


def test_a_receiver_says_from_whom():
    def run(rank):
        dist.init_process_group("nccl")
        dist.recv(torch.zeros(1, device=device()))

    with pytest.raises(RankFailed, match="say from which rank"):
        launch(run, MACHINE, 2)
