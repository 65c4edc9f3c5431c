"""Single layers and optimizers start the kernels that their names promise."""

from __future__ import annotations

import pytest

from gpututor.errors import SettingNotPossible
from gpututor.model.kernels import Gemm, RnnStep
from gpututor.model.tape import TapeOp
from gpututor.simgpu.recording import tape_steps
from gpututor.workloads.setting import Setting, Workload
from gpututor.workloads.single.layers import BMM, CONV2D, LAYER_NORM, LINEAR, SOFTMAX
from gpututor.workloads.single.optimizers import OPTIMIZER_STEP
from gpututor.workloads.single.recurrent import GRU_LAYER, LSTM_LAYER, RNN_LAYER


def ops(workload: Workload, setting: Setting) -> list[TapeOp]:
    job = []

    def step(k: int) -> object:
        if not job:
            job.append(workload.build(setting, "simgpu"))
        return job[0].step(k)

    return [e for e in tape_steps(step, n_steps=1, warmup=1, numerics=False).entries if isinstance(e, TapeOp)]


def kernels(workload: Workload, setting: Setting) -> list[object]:
    return [kernel for op in ops(workload, setting) for kernel in op.kernels]


@pytest.mark.parametrize("layer", [LSTM_LAYER, GRU_LAYER, RNN_LAYER], ids=lambda w: w.name)
def test_skip_input_leaves_only_recurrent_products(layer):
    found = kernels(layer, Setting("infer", 16, options={"hidden": 64, "steps": 7, "skip_input": True}))

    assert not any(isinstance(k, Gemm) for k in found)
    assert sum(isinstance(k, RnnStep) for k in found) == 7


def test_without_skip_input_one_product_feeds_all_steps():
    found = kernels(LSTM_LAYER, Setting("infer", 16, options={"hidden": 64, "steps": 7}))

    assert [(k.m, k.n, k.k) for k in found if isinstance(k, Gemm)] == [(7 * 16, 4 * 64, 64)]


def test_backward_under_skip_input_needs_the_hidden_weights_gradient_alone():
    found = kernels(LSTM_LAYER, Setting("gradients", 16, options={"hidden": 64, "steps": 7, "skip_input": True}))

    assert [k.name for k in found if isinstance(k, Gemm)] == ["rnn hidden weight gradient"]


def test_a_real_device_refuses_skip_input():
    job = LSTM_LAYER.build(Setting("infer", 2, options={"hidden": 4, "steps": 2, "skip_input": True}), "cpu")

    with pytest.raises(SettingNotPossible, match="set skip_input to False"):
        job.step(0)


@pytest.mark.parametrize("workload", [LINEAR, CONV2D, LAYER_NORM, SOFTMAX, BMM, LSTM_LAYER, GRU_LAYER, RNN_LAYER])
def test_layers_run_on_a_real_device_too(workload):
    options = {"hidden": 8, "steps": 3} if "hidden" in workload.options else {}

    workload.build(Setting("gradients", 2, options=options), "cpu").step(0)


def test_a_loop_over_parameters_calls_each_op_once_a_parameter():
    names = [op.name for op in ops(OPTIMIZER_STEP, Setting("train", 3, options={"form": "loop", "width": 4}))]

    assert names.count("lerp_") == 3  # the first moment of each


def test_a_fused_step_is_one_op():
    names = [op.name for op in ops(OPTIMIZER_STEP, Setting("train", 3, options={"form": "fused", "width": 4}))]

    assert names.count("_fused_adamw_") == 1


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(SettingNotPossible, match="known here: adamw, adam, sgd"):
        OPTIMIZER_STEP.build(Setting("train", options={"name": "lion"}), "cpu")
