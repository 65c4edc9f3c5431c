"""What a prediction keeps, and what it leaves as it was."""

from __future__ import annotations

import gc

import pytest

from gpututor.ledger import charge
from gpututor.predict import predict
from gpututor.workloads.setting import Setting
from gpututor.workloads.single.recurrent import LSTM_LAYER


@pytest.fixture(scope="module")
def found():
    return predict(LSTM_LAYER, Setting("infer", 2, options={"hidden": 8, "steps": 3}))


def test_the_ledger_is_that_of_the_timeline(found):
    assert found.ledger == charge(found.timeline, found.machine.card)


def test_the_ledger_is_charged_once(found):
    assert found.ledger is found.ledger


@pytest.mark.parametrize("on", [True, False])
def test_pythons_collector_is_left_as_it_was(on):
    was_on = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        assert predict(LSTM_LAYER, Setting("infer", 2, options={"hidden": 8, "steps": 3})).ledger
        assert gc.isenabled() is on
    finally:
        (gc.enable if was_on else gc.disable)()
