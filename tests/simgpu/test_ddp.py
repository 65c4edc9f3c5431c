"""DistributedDataParallel on simulated ranks: torch's own class, real averages, overlap, waits."""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from gpututor.errors import LinkNotKnown, RankFailed, RanksDisagree
from gpututor.ledger.charge import charge
from gpututor.links import wiring
from gpututor.model import tape_file
from gpututor.model.exchange import RanksExchange
from gpututor.simgpu.cards.distributed import launch, tape_ranks
from gpututor.timeline import Activity

MACHINE = "p3.8xlarge"


def net(width=64, layers=3):
    torch.manual_seed(0)
    return torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)])


def device():
    return torch.device("simgpu", torch.simgpu.current_device())


def ddp(model, **options):
    return torch.nn.parallel.DistributedDataParallel(
        model.to(device()), device_ids=[torch.simgpu.current_device()], **options
    )


def train(rank, n_steps=3, look_for_unused=False):
    """A few steps on a batch of the rank's own; gives the losses."""
    torch.set_num_threads(1)  # OpenMP counts for each thread, and a rank is one
    dist.init_process_group("nccl")
    model = ddp(net(), bucket_cap_mb=0.01, find_unused_parameters=look_for_unused)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(rank)
    x, losses = torch.randn(5, 64), []
    for _ in range(n_steps):
        loss = model(x.to(device())).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


GLOO = """
import json, multiprocessing, torch, torch.distributed as dist

def train(rank):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(3)])
    model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(rank)
    x = torch.randn(5, 64)
    losses = []
    for _ in range(3):
        loss = model(x).square().mean()
        loss.backward(); optimizer.step(); optimizer.zero_grad()
        losses.append(loss.item())
    open("{store}-" + str(rank), "w").write(json.dumps(losses))

if __name__ == "__main__":
    ranks = [multiprocessing.get_context("fork").Process(target=train, args=(rank,)) for rank in range(2)]
    [r.start() for r in ranks]
    [r.join() for r in ranks]
"""


def test_losses_are_those_of_ddp_on_two_real_processes(tmp_path):
    if not dist.is_gloo_available():
        pytest.skip("this torch has no gloo, so there is no DDP on the CPU to compare with")
    script = tmp_path / "gloo.py"
    script.write_text(textwrap.dedent(GLOO).replace("{store}", str(tmp_path / "store")))
    subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, timeout=120, check=True)
    expected = [json.loads((tmp_path / f"store-{rank}").read_text()) for rank in range(2)]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert launch(train, MACHINE, 2).results == expected
    finally:
        torch.set_num_threads(threads)


def test_gradients_are_the_average_of_the_ranks():
    def run(rank):
        dist.init_process_group("nccl")
        model = ddp(torch.nn.Linear(1, 1, bias=False))
        (model(torch.full((1, 1), float(rank), device=device()))).sum().backward()
        return model.module.weight.grad.item()

    assert launch(run, MACHINE, 4).results == [1.5] * 4  # of 0, 1, 2, 3


def test_unused_parameters_are_found():
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.used(x)

    def run(rank):
        dist.init_process_group("nccl")
        model = ddp(Half(), find_unused_parameters=True)
        for _ in range(2):
            model(torch.ones(2, 4, device=device())).sum().backward()
        return model.module.used.weight.grad is not None, model.module.unused.weight.grad is None

    assert launch(run, MACHINE, 2).results == [(True, True)] * 2


def all_reduced_bytes(tape):
    return [e.n_bytes for e in tape.entries if isinstance(e, RanksExchange) and e.kind == "all_reduce"]


def test_buckets_hold_all_gradients():
    tapes = tape_ranks(lambda rank: stepper(bucket_cap_mb=0.02), MACHINE, 2, n_steps=1)

    buckets = all_reduced_bytes(tapes.tapes[0])
    assert len(buckets) > 1
    assert sum(buckets) == 4 * 3 * (64 * 64 + 64)


def stepper(width=64, layers=3, batch=5, extra=0, **options):
    """A rank's training step; `extra` kernels hold it up."""
    model = ddp(net(width, layers), **options)
    x = torch.ones(batch, width, device=device())

    def step(k):
        for _ in range(extra):
            x * 2
        model(x).square().mean().backward()
        model.zero_grad()

    return step


def test_no_sync_exchanges_nothing_and_the_last_micro_batch_all():
    def make(rank):
        model = ddp(net())
        x = torch.ones(5, 64, device=device())

        def step(k):
            for micro in range(4):
                with model.no_sync() if micro < 3 else contextlib.nullcontext():
                    model(x).square().mean().backward()
            model.zero_grad()

        return step

    tapes = tape_ranks(make, MACHINE, 2, n_steps=1)

    assert sum(all_reduced_bytes(tapes.tapes[0])) == 4 * 3 * (64 * 64 + 64)


def collectives(timeline, rank, kind="collective"):
    return [
        s for s in timeline.on(Activity.COLLECTIVE) if timeline.lanes[s.lane].device == rank and s.work.kind == kind
    ]


def big_run(**more):
    options = {"n_steps": 1, "numerics": False, **more}
    return tape_ranks(lambda rank: stepper(1024, 6, 4096, bucket_cap_mb=4), MACHINE, 4, **options)


def test_the_first_buckets_travel_under_the_backward_pass():
    timeline = big_run().price(simulated(MACHINE))

    first = min(collectives(timeline, 0), key=lambda s: s.start_ns)
    kernels = [s for s in timeline.on(Activity.KERNEL) if timeline.lanes[s.lane].device == 0]
    assert any(k.start_ns < first.end_ns and k.end_ns > first.start_ns for k in kernels)


def test_one_big_bucket_is_exposed_and_small_ones_are_hidden():
    def step_ns(cap_mb):
        tapes = tape_ranks(
            lambda rank: stepper(1024, 8, 8192, bucket_cap_mb=cap_mb), "8x-RTX-3090", 2, n_steps=1, numerics=False
        )
        return tapes.price(simulated("8x-RTX-3090")).duration_ns

    assert step_ns(4) < step_ns(1000)


def simulated(name):
    from gpututor.cards import machine

    return machine(name)


def test_a_late_rank_lets_the_others_wait_and_the_ledger_says_so():
    tapes = tape_ranks(
        lambda rank: stepper(256, 3, 64, extra=300 if rank == 1 else 0), MACHINE, 2, n_steps=1, numerics=False
    )
    timeline = tapes.price(simulated(MACHINE))

    waited = sum(s.duration_ns for s in collectives(timeline, 0, "waiting for ranks"))
    late = sum(s.duration_ns for s in collectives(timeline, 1, "waiting for ranks"))
    assert waited > 1_000_000 > late
    exposed = [charge(timeline, device=k).charged_ns for k in (0, 1)]
    names = [{a.value: ns for a, ns in e.items()}["exposed communication"] for e in exposed]
    assert names[0] > names[1]


def test_every_ranks_ledger_adds_up():
    timeline = big_run().price(simulated(MACHINE))

    for rank in range(4):
        assert sum(charge(timeline, device=rank).charged_ns.values()) == timeline.duration_ns


def test_a_run_of_ranks_repeats_to_the_nanosecond():
    first, second = launch(train, MACHINE, 4), launch(train, MACHINE, 4)

    assert first.results == second.results
    assert first.timeline() == second.timeline()


def test_the_clock_of_a_running_rank_is_that_of_its_timeline():
    run = launch(train, MACHINE, 2)
    timeline = run.timeline()

    for rank, session in enumerate(run.sessions):
        host = [s.end_ns for s in timeline.spans if timeline.lanes[s.lane].name == f"rank {rank}, main thread"]
        assert max(host) == session.host_ns


def test_numerics_change_no_time():
    def timeline(numerics):
        tapes = tape_ranks(lambda rank: stepper(), MACHINE, 2, n_steps=1, numerics=numerics)
        return tapes.price(simulated(MACHINE)).spans

    assert timeline(True) == timeline(False)


def test_ranks_in_step_take_the_time_of_ranks_that_all_run():
    together = big_run().price(simulated(MACHINE))
    in_step = big_run(in_step=True).price(simulated(MACHINE))

    assert in_step.duration_ns == together.duration_ns


def test_sixteen_ranks_take_several_machines_and_the_network_between_them():
    def step_ns(network):
        tapes = tape_ranks(
            lambda rank: stepper(1024, 6, 512), "p3.16xlarge", 16, n_steps=1, numerics=False, in_step=True
        )
        return tapes.price(simulated("p3.16xlarge"), network).duration_ns

    assert step_ns("efa-400g") < step_ns("ethernet-25g") < step_ns("ethernet-1g")


def test_collectives_give_what_they_say():
    def run(rank):
        dist.init_process_group("gloo")
        x = torch.full((2,), float(rank), device=device())
        gathered = [torch.zeros_like(x) for _ in range(3)]
        dist.all_gather(gathered, x)
        top = x.clone()
        dist.all_reduce(top, dist.ReduceOp.MAX)
        part = torch.zeros(1, device=device())
        dist.reduce_scatter(part, list(torch.arange(3.0, device=device()).split(1)))
        sent = x.clone()
        dist.broadcast(sent, 1)
        pair = dist.new_group([0, 2])
        summed = x.clone()
        if rank != 1:
            dist.all_reduce(summed, group=pair)
        return [t.tolist()[0] for t in gathered], top[0].item(), part.item(), sent[0].item(), summed[0].item()

    expected = [([0, 1, 2], 2, 3.0 * rank, 1, (2, 1, 2)[rank]) for rank in range(3)]
    assert launch(run, MACHINE, 3).results == expected


def test_an_error_of_one_rank_in_backward_stops_all_and_names_the_rank():
    def run(rank):
        dist.init_process_group("nccl")
        model = ddp(net())
        out = model(torch.ones(2, 64, device=device()))
        if rank == 1:
            out.register_hook(lambda grad: 1 / 0)
        out.sum().backward()

    with pytest.raises(RankFailed, match="rank 1 raised ZeroDivisionError"):
        launch(run, MACHINE, 2)
    assert launch(train, MACHINE, 2).results  # and the next run is none the worse


def test_ranks_that_wait_for_ever_are_told_so():
    def run(rank):
        dist.init_process_group("nccl")
        if rank == 0:
            dist.all_reduce(torch.ones(1, device=device()))

    with pytest.raises(RanksDisagree, match=r"rank 0 waits in all_reduce of 4 bytes.*ended: 1"):
        launch(run, MACHINE, 2)


def test_each_rank_has_its_own_random_numbers():
    def run(rank):
        dist.init_process_group("nccl")
        torch.manual_seed(rank)
        first = torch.rand(1).item()
        dist.barrier()
        return first, torch.rand(1).item()

    expected = []
    for rank in range(3):
        torch.manual_seed(rank)
        expected.append((torch.rand(1).item(), torch.rand(1).item()))
    assert launch(run, MACHINE, 3).results == expected


def test_losses_do_not_depend_on_looking_for_unused_parameters():
    assert launch(train, MACHINE, 2).results == launch(train, MACHINE, 2, args=(3, True)).results


def test_gradient_accumulation_equals_one_large_batch():
    torch.manual_seed(0)
    model, x = net(8, 2).double(), torch.randint(-3, 4, (8, 8)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randint(-3, 4, p.shape).double())
    model(x).sum().backward()
    expected = [p.grad / 2 for p in model.parameters()]

    def run(rank):
        dist.init_process_group("nccl")
        twin = copy.deepcopy(model)
        twin.zero_grad()
        parallel = ddp(twin)
        mine = x.chunk(2)[rank].to(device())
        with parallel.no_sync():
            parallel(mine[:2]).sum().backward()
        parallel(mine[2:]).sum().backward()
        return [p.grad.cpu() for p in parallel.parameters()]

    for found in launch(run, MACHINE, 2).results:
        assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True))


# --- one tape for all ranks ---------------------------------------------------------------------------------------


def in_step_tape(n_ranks):
    tapes = big_run(in_step=True)
    tape = tapes.tapes[0]
    return type(tape)(tape.what, tape.entries, [], 1, n_ranks=n_ranks), tapes


def test_a_tape_of_one_rank_among_several_is_priced_as_they_are_in_training():
    tape, tapes = in_step_tape(4)

    assert tape.price(simulated(MACHINE)).spans == tapes.price(simulated(MACHINE), as_in_training=True).spans


def test_a_tape_of_ranks_survives_a_file():
    tape, _ = in_step_tape(4)
    again = tape_file.from_bytes(tape_file.to_bytes(tape))

    assert again == tape
    assert again.steps(0, 1).n_ranks == 4


def test_a_machine_says_by_what_its_cards_are_joined():
    tape, _ = in_step_tape(4)
    slow = replace(simulated(MACHINE), joined_by="pcie-virtual")

    assert wiring(slow).cards.name == "pcie-virtual"
    assert tape.price(slow).duration_ns > tape.price(simulated(MACHINE)).duration_ns


def test_a_link_that_nobody_knows_is_refused():
    with pytest.raises(LinkNotKnown):
        wiring(replace(simulated(MACHINE), joined_by="string"))
