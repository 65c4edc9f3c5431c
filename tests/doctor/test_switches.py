"""Debug switches that are left on, in the environment and inside torch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpututor.doctor import State, this_process
from gpututor.doctor import switches as s
from gpututor.doctor.facts import Switches
from tests.doctor.places import MACHINE, found, healthy, state, with_torch


@pytest.mark.parametrize(
    ("check", "name", "value", "expected"),
    [
        (s.launch_blocking, "CUDA_LAUNCH_BLOCKING", "1", State.WARN),
        (s.launch_blocking, "CUDA_LAUNCH_BLOCKING", "0", State.PASS),
        (s.launch_blocking, "CUDA_LAUNCH_BLOCKING", "", State.PASS),
        (s.allocator, "PYTORCH_NO_CUDA_MEMORY_CACHING", "1", State.FAIL),
        (s.compiling, "TORCHDYNAMO_DISABLE", "1", State.WARN),
        (s.compiling, "TORCH_COMPILE_DISABLE", "1", State.WARN),
        (s.compiling, "PYTORCH_JIT", "0", State.WARN),
        (s.compiling, "PYTORCH_JIT", "1", State.PASS),
        (s.jit_cache, "CUDA_CACHE_DISABLE", "1", State.WARN),
        (s.jit_cache, "CUDA_FORCE_PTX_JIT", "1", State.WARN),
        (s.tf32, "NVIDIA_TF32_OVERRIDE", "0", State.WARN),
        (s.tf32, "NVIDIA_TF32_OVERRIDE", "1", State.PASS),
        (s.logging, "NCCL_DEBUG", "INFO", State.WARN),
        (s.logging, "NCCL_DEBUG", "WARN", State.PASS),
        (s.logging, "TORCH_DISTRIBUTED_DEBUG", "DETAIL", State.WARN),
        (s.logging, "TORCH_DISTRIBUTED_DEBUG", "INFO", State.PASS),
        (s.logging, "TORCH_LOGS", "+dynamo", State.WARN),
        (s.logging, "TORCH_LOGS", "graph_breaks", State.PASS),
        (s.python, "PYTHONDEVMODE", "1", State.WARN),
        (s.python, "PYTHONTRACEMALLOC", "25", State.WARN),
        (s.python, "PYTHONMALLOC", "debug", State.WARN),
        (s.python, "PYTHONMALLOC", "pymalloc", State.PASS),
        (s.profiler, "CUDA_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so", State.WARN),
        (s.profiler, "LD_PRELOAD", "/usr/lib/libasan.so.8", State.WARN),
        (s.profiler, "LD_PRELOAD", "/usr/lib/libjemalloc.so.2", State.PASS),
    ],
)
def test_a_variable_that_costs_time_is_told(tmp_path, check, name, value, expected):
    finding = found(check, healthy(tmp_path, environ={name: value}))

    assert finding.state is expected
    if expected is not State.PASS:
        assert f"{name}={value}" in finding.evidence[0]
        assert name in finding.remedy


def test_a_switch_that_costs_nothing_is_not_told(tmp_path):
    environ = {"TORCH_SHOW_CPP_STACKTRACES": "1", "PYTHONUNBUFFERED": "1"}
    facts = healthy(tmp_path, environ=environ)

    assert {finding.state for check in s.CHECKS if (finding := check(facts))} == {State.PASS}


def test_pythons_development_mode_is_told_without_a_variable(tmp_path):
    assert state(s.python, healthy(tmp_path, machine=replace(MACHINE, development_mode=True))) is State.WARN


@pytest.mark.parametrize(
    ("check", "switches", "expected"),
    [
        (s.anomaly, Switches(anomaly=True), State.WARN),
        (s.anomaly, Switches(), State.PASS),
        (s.deterministic, Switches(deterministic=True), State.WARN),
        (s.deterministic, Switches(cudnn_deterministic=True), State.WARN),
        (s.deterministic, Switches(), State.PASS),
        (s.benchmark, Switches(cudnn_benchmark=True), State.CANNOT_TELL),  # right or wrong by the shapes
        (s.benchmark, Switches(cudnn_enabled=False), State.WARN),
        (s.benchmark, Switches(), State.PASS),
        (s.anomaly, None, None),
    ],
)
def test_settings_inside_torch_are_told(tmp_path, check, switches, expected):
    assert state(check, with_torch(tmp_path, switches=switches)) is expected


def test_a_script_can_ask_for_its_own_switches(monkeypatch):
    import torch

    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    before = this_process()
    with torch.autograd.set_detect_anomaly(True):
        during = this_process()

    assert "Anomaly" not in before
    assert "Anomaly mode of autograd: on" in during
