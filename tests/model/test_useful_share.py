"""A step may say how much of its arithmetic is no padding: its kernels and the ledger know then."""

from __future__ import annotations

import pytest

from gpututor.ledger import Account, charge
from gpututor.lookup import machine_named
from gpututor.model import tape_file
from gpututor.model.spec import Gemm, HostKind
from gpututor.model.tape import BeginStep, EndRun, Sync, Tape, TapeOp

V100 = machine_named()
SIZE = 2048
PRODUCT = TapeOp("mm", HostKind.GEMM, "forward", (Gemm("mm", SIZE, SIZE, SIZE, 3 * 4 * SIZE**2),))
FLOP = 2 * SIZE**3


def useful(tape: Tape) -> list[float | None]:
    return [s.work.useful_flop for s in tape.price(V100).spans if s.work is not None]


def run(*shares: float | None, n: int = 1) -> Tape:
    steps = [entry for share in shares for entry in (BeginStep(8, share), *[PRODUCT] * n)]
    return Tape("padded", [*steps, Sync("synchronize"), EndRun()])


def test_without_a_word_on_it_nothing_is_told():
    assert useful(run(None)) == [None]


def test_the_kernels_of_a_step_have_its_share():
    assert useful(run(0.25, None, 1.0)) == [FLOP / 4, None, FLOP]


def test_a_kernel_belongs_to_the_step_that_launched_it():
    tape = run(0.5, 0.125, n=20)
    last = tape.price(V100).steps[-1]
    kernels = [s for s in tape.price(V100).spans if s.work is not None]

    assert sum(s.start_ns > last.start_ns for s in kernels) > 20  # the host was far ahead
    assert useful(tape) == [FLOP / 2] * 20 + [FLOP / 8] * 20


def test_the_ledger_charges_the_rest_to_padding():
    ledger = charge(run(0.25).price(V100), V100.card)

    assert ledger.share(Account.RECOMPUTE_AND_PADDING) == pytest.approx(3 * ledger.share(Account.USEFUL), rel=1e-3)


def test_padding_takes_from_what_was_useful_and_from_nothing_else():
    without, told = (charge(run(share).price(V100), V100.card) for share in (None, 0.25))
    both = (Account.USEFUL, Account.RECOMPUTE_AND_PADDING)

    assert told.share(*both) == pytest.approx(without.share(*both), abs=1e-6)
    assert told.window_ns == without.window_ns


def test_a_file_keeps_it():
    assert tape_file.from_bytes(tape_file.to_bytes(run(0.25, None))).entries == run(0.25, None).entries
