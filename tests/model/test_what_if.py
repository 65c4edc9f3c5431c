"""Constants set otherwise for one pricing: each moves what it stands for, by the amount it was changed."""

from __future__ import annotations

import pytest

from gpututor.cards import machine
from gpututor.model.cost import price
from gpututor.model.costs.walk import floor_s
from gpututor.model.kernels import Memset, RowReduce, Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, EndRun, Sync, Tape, TapeOp
from gpututor.model.what_if import WhatIf
from gpututor.replay import LEVERS, sensitivity
from gpututor.timeline import Activity

RENTED = machine("p3.2xlarge")
FILL = Memset("fill", 4)
US = 1000


def tape_of(n_ops: int, n_kernels: int = 1) -> Tape:
    """Steps of one op each that launches so many tiny kernels, and a wait at the end of each."""
    op = TapeOp("op", HostKind.LIGHT, "no_grad", (FILL,) * n_kernels)
    entries = [entry for _ in range(n_ops) for entry in (BeginStep(), op, Sync("item"))]
    return Tape("tiny", [*entries, EndRun()], [None] * n_ops)


def kernels(tape: Tape, what_if: WhatIf | None = None):
    timeline = tape.price(RENTED, what_if=what_if or WhatIf())
    return list(timeline.on(Activity.KERNEL, Activity.MEMSET))


def test_nothing_changed_is_the_model_itself():
    assert tape_of(3).price(RENTED, what_if=WhatIf()) == tape_of(3).price(RENTED)


def test_a_longer_floor_lengthens_each_kernel_by_it():
    (before,), (after,) = kernels(tape_of(1)), kernels(tape_of(1), WhatIf(floor_times=3))

    assert after.duration_ns - before.duration_ns == round(2 * floor_s() * 1e9)


def test_half_a_floor_leaves_what_memory_takes():
    spec = Stream("copy", 2**29, 2**26)
    before_ns = price(spec, RENTED.card).duration_ns

    assert WhatIf(floor_times=0.5).kernel_ns(spec, before_ns) == before_ns - round(0.5 * floor_s() * 1e9)


def test_a_kernel_never_lasts_less_than_a_nanosecond():
    assert WhatIf(floor_times=0.0).kernel_ns(FILL, 5) == 1


def test_a_later_start_after_the_launch_call_is_the_latency():
    (before,), (after,) = kernels(tape_of(1)), kernels(tape_of(1), WhatIf(launch_latency_ns=5 * US))

    assert after.start_ns - before.start_ns == 4 * US  # 1 µs in the model


def test_queued_kernels_lie_a_gap_apart():
    # floors of 100 times make kernels longer than their launches, so that they queue
    first, second = kernels(tape_of(1, n_kernels=2), WhatIf(floor_times=100, kernel_gap_ns=7 * US))

    assert second.start_ns - first.end_ns == 7 * US


@pytest.mark.parametrize("name", LEVERS)
def test_a_lever_at_one_changes_nothing(name):
    changed, what_if = LEVERS[name](RENTED, 1.0)
    tape = tape_of(2)

    assert tape.price(changed, what_if=what_if).spans == tape.price(RENTED).spans


def test_a_host_half_as_slow_halves_a_step_that_is_all_host():
    host_only = Tape("host", [BeginStep(), TapeOp("view", HostKind.VIEW, "no_grad"), EndRun()], [None])
    found = sensitivity(host_only, RENTED, factors=(0.5,))
    (moved,) = [m for m in found.moved if m.lever == "host: all of it"]

    assert moved.step_ns == pytest.approx(found.as_it_is.step_ns / 2, abs=2)


def test_twice_the_floor_of_a_kernel_that_is_all_floor_doubles_the_busy_time():
    row = TapeOp("sum", HostKind.LIGHT, "no_grad", (RowReduce("sum", 1, 1, 8),))
    tape = Tape("sum", [BeginStep(), row, Sync("item"), EndRun()], [None])
    found = sensitivity(tape, RENTED, factors=(2.0,))
    (moved,) = [m for m in found.moved if m.lever == "kernels: their floor"]

    busy_ns, more_ns = (m.busy_share * m.step_ns for m in (found.as_it_is, moved))
    assert more_ns == pytest.approx(2 * busy_ns, rel=0.05)


def test_every_lever_is_tried_at_every_factor():
    found = sensitivity(tape_of(2), RENTED, factors=(0.25, 4.0))

    assert [(m.lever, m.times) for m in found.moved] == [(name, times) for name in LEVERS for times in (0.25, 4.0)]
