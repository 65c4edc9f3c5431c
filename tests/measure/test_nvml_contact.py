"""Calls past the binding give what calls through it give."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml
import pytest

from gpututor.measure.nvml import metric
from gpututor.measure.nvml.questions import _MEMORY_V2, _Field
from tests.measure.fake_nvml.by_hand import INTERVAL_NS, ByHand

ASKED = (
    "kernel_time_share memory_time_share memory_used_bytes power_w sm_clock_hz clock_reasons temperature_c "
    "memory_clock_hz pcie_gen pcie_lanes power_now_w held_by_brake_s"
).split()


class Closed:
    """The binding as old ones are: it doesn't show how it finds functions."""

    def __getattr__(self, name: str) -> Any:
        if name == "_nvmlGetFunctionPointer":
            raise AttributeError(name)
        return getattr(pynvml, name)


def asked(nvml: Any, *times_s: float) -> ByHand:
    rounds = ByHand(INTERVAL_NS, None, nvml)
    rounds.open()
    rounds.at(*times_s)
    rounds.close()
    return rounds


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("script", ["", "util=0;memutil=99;power_mw=61253;clock=345;temp=31;reasons=68;used_mib=1"])
def test_a_value_past_the_binding_is_the_one_through_it(driver, name, script):
    driver.says(script)
    past, through = asked(pynvml, 0).standing(name), asked(Closed(), 0).standing(name)

    assert (past.latest, past.state) == (through.latest, through.state)
    assert metric(name).lowest <= past.latest <= metric(name).highest


@pytest.mark.parametrize("code", [3, 6, 15, 17, 999])
@pytest.mark.parametrize("function", ["PowerUsage", "UtilizationRates", "MemoryInfo_v2", "FieldValues"])
def test_a_refusal_past_the_binding_is_the_one_through_it(driver, function, code):
    driver.says(f"nvmlDeviceGet{function}={code}")
    past, through = asked(pynvml, 0, 5), asked(Closed(), 0, 5)

    assert {name: past.why(name) for name in ASKED} == {name: through.why(name) for name in ASKED}


def test_a_field_is_laid_out_as_the_binding_does_it():
    def layout(kind: Any) -> list[tuple[str, int, int]]:
        return [(name, getattr(kind, name).offset, getattr(kind, name).size) for name, *_ in kind._fields_]

    assert layout(_Field) == layout(pynvml.c_nvmlFieldValue_t)


def test_the_version_of_the_memory_structure_is_the_bindings():
    assert pynvml.nvmlMemory_v2 == _MEMORY_V2


def test_used_memory_is_the_fifth_number_of_eight_bytes():
    assert pynvml.c_nvmlMemory_v2_t.used.offset == 4 * ctypes.sizeof(ctypes.c_ulonglong)
