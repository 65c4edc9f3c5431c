"""Pauses and launches that wait, on a tape: counted spans, and times that add up."""

from __future__ import annotations

import pytest

from gpututor.cards import machine
from gpututor.ledger import Account, charge
from gpututor.model import tape_file
from gpututor.model.kernels import Stream
from gpututor.model.marks import LAUNCH_BLOCKING, BeginPause, EndPause, LaunchBlocking
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, EndRun, GraphReplay, HostWork, Player, Pricer, Sync, Tape, TapeOp
from gpututor.timeline import Activity

HERE = machine("p3.2xlarge")
KERNEL = Stream("walk", 10**8, 10**7)  # some 0.1 ms on a V100
OP = TapeOp("mul", HostKind.LIGHT, "no_grad", (KERNEL,))
THREE = TapeOp("each", HostKind.FOREACH, "no_grad", (KERNEL,) * 3)
MS = 1_000_000


def played(*entries):
    return Tape("", [BeginStep(), *entries, Sync("end"), EndRun()]).price(HERE)


def pauses(timeline):
    return [(s.name, s.duration_ns) for s in timeline.on(Activity.PAUSE)]


def test_a_pause_lasts_as_long_as_what_the_host_does_in_it():
    work = HostWork(Activity.PYTHON, "counting", 3 * MS)

    assert pauses(played(BeginPause("log"), work, EndPause(), work)) == [("log", 3 * MS)]


def test_pauses_may_lie_in_one_another():
    work = HostWork(Activity.PYTHON, "counting", MS)
    found = pauses(played(BeginPause("outer"), work, BeginPause("inner"), work, EndPause(), EndPause()))

    assert sorted(found) == [("inner", MS), ("outer", 2 * MS)]


def test_a_pause_changes_no_time():
    plain, paused = played(OP, OP), played(OP, BeginPause("log"), OP, EndPause())

    assert plain.duration_ns == paused.duration_ns


def test_the_ledger_charges_an_idle_card_to_the_pause_it_lies_in():
    timeline = played(OP, Sync("done"), BeginPause("log"), HostWork(Activity.PYTHON, "", 5 * MS), EndPause(), OP)
    paused_ns = charge(timeline, HERE.card).charged_ns[Account.PAUSE]

    assert paused_ns == 5 * MS


def test_a_tape_cut_inside_a_pause_can_be_played():
    entries = [BeginStep(), OP, BeginPause("log"), BeginStep(), OP, EndPause(), EndRun()]

    assert pauses(Tape("", entries).steps(1, 2).price(HERE)) == []


def test_marks_come_back_from_a_file():
    entries = [LaunchBlocking(), BeginStep(), BeginPause("log"), OP, EndPause(), LaunchBlocking(on=False), EndRun()]
    tape = Tape("", entries)

    assert tape_file.from_bytes(tape_file.to_bytes(tape)).entries == entries


def test_a_launch_that_waits_leaves_host_and_card_no_time_side_by_side():
    timeline = played(LaunchBlocking(), OP, OP, OP)
    kernels = sorted((s for s in timeline.on(Activity.KERNEL)), key=lambda s: s.start_ns)
    waits = [s for s in timeline.on(Activity.SYNC) if s.name == LAUNCH_BLOCKING]

    assert len(waits) == 3
    assert all(wait.end_ns >= kernel.end_ns for wait, kernel in zip(waits, kernels, strict=True))
    assert all(a.end_ns <= b.start_ns for a, b in zip(waits, kernels[1:], strict=False))


@pytest.mark.parametrize("op", [OP, THREE], ids=["one kernel", "three kernels"])
def test_waiting_takes_the_hosts_work_and_the_kernels_one_after_the_other(op):
    pricer = Pricer(HERE)
    priced = pricer.op(op)
    n = len(priced.kernels)
    host_ns = priced.python_ns + priced.dispatch_ns + n * priced.launch_ns
    kernel_ns = sum(long_ns for _, long_ns, _ in priced.kernels)
    waiting = Player(pricer)
    waiting.play(LaunchBlocking())
    waiting.play(op)
    alone_ns = waiting.queue.host_ns

    # after each launch: the way to the card, and what a wait adds; dispatch that follows a launch may run meanwhile
    most_ns = host_ns + kernel_ns + n * (1_000 + pricer.sync_ns)
    assert most_ns - priced.dispatch_ns <= alone_ns <= most_ns


def test_switched_off_again_launches_run_ahead():
    on = played(LaunchBlocking(), OP, OP).duration_ns
    off = played(LaunchBlocking(), LaunchBlocking(on=False), OP, OP).duration_ns

    assert off == played(OP, OP).duration_ns < on


def test_a_graph_waits_once_for_all_of_its_kernels():
    timeline = played(LaunchBlocking(), GraphReplay(0, (OP,) * 4))

    assert len([s for s in timeline.on(Activity.SYNC) if s.name == LAUNCH_BLOCKING]) == 1
