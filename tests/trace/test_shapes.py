"""FLOP and bytes of kernels from the shapes of the operators that launched them, counted by hand."""

from __future__ import annotations

import json
from math import isfinite

import pytest

from gpututor import timeline_file
from gpututor.cards import card
from gpututor.ledger import Account, charge
from gpututor.timeline import Activity
from gpututor.trace import operators, read
from gpututor.trace.demand import demand_of

GEMM = "volta_sgemm_128x64_nn"
NO_BIAS, BOTH = "", "[True, True, False]"


def event(cat, name, ts, dur, pid=1, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}


def operator(name, dims, types, concrete=None, strides=None, ts=0, dur=50, tid=1, number=9):
    told = {"Input Dims": dims, "Input type": types, "External id": number}
    told |= {} if concrete is None else {"Concrete Inputs": concrete}
    told |= {} if strides is None else {"Input Strides": strides}
    return event("cpu_op", name, ts, dur, tid=tid, **told)


def launched(*names, ts=10, long_us=20, first=1, **more):
    """A call and a kernel for each name, one after the other."""
    made = []
    for k, name in enumerate(names):
        made.append(event("cuda_runtime", "cudaLaunchKernel", ts + k, 1, correlation=first + k))
        at = 100 + 100 * k
        long = long_us[k] if isinstance(long_us, tuple) else long_us
        made.append(event("kernel", name, at, long, 0, 7, device=0, stream=7, correlation=first + k, **more))
    return made


def works(*events):
    return [s.work for s in read(list(events)).on(Activity.KERNEL)]


def only(*args, kernel=GEMM, **more):
    """FLOP and bytes of the one kernel of an operator."""
    (work,) = works(operator(*args, **more), *launched(kernel))
    return work.flop, work.moved_bytes


FLOATS = ["float"] * 3


# --- what operators ask ---------------------------------------------------------------------------------------------


def test_a_product_has_two_flop_for_each_pair_that_meets():
    # 3 x 5 by 5 x 7: 2 x 3 x 5 x 7; bytes of 15, 35 and 21 floats
    assert only("aten::mm", [[3, 5], [5, 7]], FLOATS[:2]) == (210, 284)


def test_a_bias_is_read_once_more():
    assert only("aten::addmm", [[7], [3, 5], [5, 7]], FLOATS) == (210, 284 + 28)


def test_a_batch_of_products_has_that_of_each():
    assert only("aten::bmm", [[2, 3, 5], [2, 5, 7]], FLOATS[:2]) == (420, 568)


def test_a_batch_added_to_reads_what_it_is_added_to():
    assert only("aten::baddbmm", [[2, 3, 7], [2, 3, 5], [2, 5, 7]], FLOATS) == (420, 568 + 2 * 84)


def test_a_linear_layers_rows_are_all_but_its_last_dimension():
    # 6 rows of 5 by 7 x 5: 2 x 6 x 5 x 7; bytes of 30, 35, 42 and 7 floats
    assert only("aten::linear", [[2, 3, 5], [7, 5], [7]], FLOATS) == (420, 4 * (30 + 35 + 42 + 7))


@pytest.mark.parametrize(("stride", "flop", "n_out"), [(1, 1728, 48), (2, 432, 12)])
def test_a_convolution_counts_the_pixels_that_come_out(stride, flop, n_out):
    # 3 channels out, 2 in, 9 weights: 2 x 3 x 2 x 9 = 108 for each of 4 x 4 or 2 x 2 pixels
    numbers = ["", "", "[1, 1]", f"[{stride}, {stride}]", "[1, 1]", "1", "False", "False", "True"]
    dims, types = [[1, 2, 4, 4], [3, 2, 3, 3], *[[]] * 7], ["float", "float", *["ScalarList"] * 3, *["Scalar"] * 4]

    assert only("aten::cudnn_convolution", dims, types, numbers) == (flop, 4 * (32 + 54 + n_out))


def test_groups_divide_a_convolutions_flop():
    numbers = ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "2", "False", "False", "True"]
    dims, types = [[1, 2, 4, 4], [4, 1, 3, 3], *[[]] * 7], ["float", "float", *["ScalarList"] * 3, *["Scalar"] * 4]

    # 4 channels out, each from 1 in: 2 x 4 x 1 x 9 x 16
    assert only("aten::cudnn_convolution", dims, types, numbers)[0] == 1152


def convolution_backward():
    numbers = ["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", BOTH]
    kinds = ["float"] * 3 + ["ScalarList"] * 4 + ["Scalar", "ScalarList", "Scalar", "ScalarList"]
    return operator("aten::convolution_backward", [[1, 3, 4, 4], [1, 2, 4, 4], [3, 2, 3, 3], *[[]] * 8], kinds, numbers)


def test_a_convolutions_two_gradients_have_its_flop_each():
    found = works(convolution_backward(), *launched("cudnn_dgrad", "cudnn_wgrad"))

    assert [w.flop for w in found] == [1728, 1728]


def test_what_prepares_a_convolution_multiplies_nothing():
    found = works(convolution_backward(), *launched("nchwToNhwcKernel", "cudnn_dgrad", "cudnn_wgrad"))

    assert [w.flop for w in found] == [0, 1728, 1728]


def test_the_gradient_to_an_input_of_old_torch_is_known_from_gradient_and_weights():
    dims, types = [[], [1, 3, 4, 4], [3, 2, 3, 3]], ["GenericList", "float", "float"]

    assert only("aten::cudnn_convolution_backward_input", dims, types) == (1728, None)


@pytest.mark.parametrize(("causal", "flop"), [("False", 2304), ("True", 1152)])
def test_attention_is_two_products_and_a_causal_mask_halves_them(causal, flop):
    # 2 heads of 6 x 8: 2 products x 2 x 2 heads x 6 x 6 x 8
    numbers = ["", "", "", "", "", "6", "6", "0.", causal, "False"]
    types = ["c10::Half"] * 3 + ["", ""] + ["Scalar"] * 5
    dims = [[1, 6, 2, 8]] * 3 + [[]] * 7

    # bytes: queries, keys, values and the result, 96 numbers of 2 bytes each
    assert only("aten::_flash_attention_forward", dims, types, numbers, kernel="flash_fwd_kernel") == (flop, 4 * 192)


@pytest.mark.parametrize(
    ("name", "dims", "types", "moved_bytes"),
    [
        pytest.param("aten::add", [[4, 8], [8]], ["float", "float"], 4 * (32 + 8 + 32), id="one is broadcast"),
        pytest.param("aten::mul_", [[4, 8], []], ["float", "double"], 4 * 64 + 8, id="in place"),
        pytest.param("aten::copy_", [[4, 8], [4, 8]], ["c10::Half", "float"], 32 * (2 + 4), id="cast"),
        pytest.param("aten::fill_", [[4, 8], []], ["float", "Scalar"], 4 * 32, id="fill"),
        pytest.param("aten::clamp_min", [[4, 8], [], [4, 8]], ["float", "Int", "float"], 4 * 64, id="into another"),
        pytest.param("aten::gt", [[4, 8], [4, 8]], ["float", "float"], 32 * (4 + 4 + 1), id="a bool comes out"),
        pytest.param("aten::_softmax", [[4, 8], [], []], ["float", "Scalar", "Scalar"], 2 * 128, id="softmax"),
        pytest.param("aten::native_layer_norm", [[4, 8], [], [8], [8]], ["float", "", *FLOATS[:2]], 256, id="norm"),
    ],
)
def test_work_along_elements_moves_its_tensors_once(name, dims, types, moved_bytes):
    assert only(name, dims, types, kernel="elementwise_kernel")[1] == moved_bytes


def test_a_tensor_expanded_by_stride_0_is_stored_once():
    dims, strides = [[4, 8], [4, 8]], [[8, 1], [0, 1]]

    assert only("aten::add", dims, FLOATS[:2], strides=strides, kernel="elementwise_kernel")[1] == 4 * (32 + 8 + 32)


def test_a_sum_over_recorded_dimensions_writes_what_is_left():
    found = only("aten::sum", [[4, 8], []], ["float", "ScalarList"], ["", "[1]"], kernel="reduce_kernel")

    assert found == (32, 4 * (32 + 4))


def test_moving_numbers_has_no_flop():
    assert only("aten::cat", [[], []], ["TensorList", "Scalar"], kernel="CatArrayBatchedCopy") == (0, None)


# --- what can't be told ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dims", "types", "why"),
    [
        ("aten::cudnn_convolution", [[1, 2, 4, 4], [3, 2, 3, 3]], ["float", "float"], "its stride isn't recorded"),
        ("aten::_flash_attention_forward", [[1, 6, 2, 8]] * 3, ["c10::Half"] * 3, "whether its mask is causal"),
        ("fbgemm::permute", [[3]], ["float"], "isn't torch's own"),
        ("aten::never_heard_of", [[3]], ["float"], "isn't known here"),
        ("aten::mm", [[3, 5], [5, 7]], ["Thing", "Thing"], "needs a tensor"),
        ("aten::add", [[3], [4]], ["float", "float"], "don't fit together"),
        ("aten::add", [[-3], [3]], ["float", "float"], "can't be read"),
        ("aten::add", [[2**40, 2**40], [1]], ["float", "float"], "larger than any card"),
        ("aten::add", "seven", ["float", "float"], "can't be read"),
    ],
)
def test_where_shapes_do_not_say_there_is_a_reason_and_no_number(name, dims, types, why):
    (work,) = works(operator(name, dims, types), *launched("k"))

    assert (work.flop, work.moved_bytes) == (None, None)
    assert why in work.flop_unknown


def test_a_causal_mask_that_cannot_be_read_is_not_guessed():
    numbers = ["", "", "", "", "", "6", "6", "0.", "N/A", "False"]
    types, dims = ["c10::Half"] * 3 + ["", ""] + ["Scalar"] * 5, [[1, 6, 2, 8]] * 3 + [[]] * 7

    assert only("aten::_flash_attention_forward", dims, types, numbers, kernel="flash_fwd_kernel") == (None, None)


def test_which_of_several_kernels_multiplies_may_stay_open():
    found = works(operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2]), *launched("one", "another"))

    assert [w.flop for w in found] == [None, None]
    assert "the names don't say" in found[0].flop_unknown


def test_without_shapes_nothing_is_said():
    (work,) = works(event("cpu_op", "aten::mm", 0, 50), *launched(GEMM))

    assert (work.flop, work.flop_unknown) == (None, None)


@pytest.mark.parametrize("junk", [None, 3, "x", [None], [[None]], [["3"]], [[1.5]], {"a": 1}, [[[[[]]]]], [[1e300]]])
@pytest.mark.parametrize("field", ["Input Dims", "Input type", "Input Strides", "Concrete Inputs"])
@pytest.mark.parametrize("as_file", [False, True])
def test_damaged_shapes_never_break_reading(junk, field, as_file, tmp_path):
    asked = convolution_backward()
    asked["args"][field] = junk
    events = [asked, *launched("cudnn_dgrad")]
    (tmp_path / "trace.json").write_text(json.dumps(events))
    (span,) = read(tmp_path / "trace.json" if as_file else events).on(Activity.KERNEL)

    assert span.work.flop is None or isfinite(span.work.flop)


# --- whose kernel it is ---------------------------------------------------------------------------------------------


def test_several_that_multiply_share_by_time_and_sum_to_the_operators():
    found = works(
        operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2]),
        *launched(GEMM, GEMM, "splitKreduce_kernel", long_us=(20, 60, 5)),
    )

    assert [w.flop for w in found] == [52.5, 157.5, 0]


def test_the_innermost_operator_counts():
    outer = operator("aten::matmul", [[9, 9], [9, 9]], FLOATS[:2], ts=0, dur=90, number=8)
    inner = operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2], ts=5, dur=50)

    assert works(outer, inner, *launched(GEMM))[0].flop == 210


def test_an_operator_that_has_ended_launched_nothing():
    (work,) = works(operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2], dur=10), *launched(GEMM, ts=10))

    assert work.flop_unknown == operators.OUTSIDE.why


def test_an_operator_of_another_thread_launched_nothing():
    (work,) = works(operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2], tid=2), *launched(GEMM))

    assert work.flop is None


def test_without_its_call_a_kernel_is_its_operators_by_number():
    asked = operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2], number=77)
    alone = event("kernel", GEMM, 100, 20, 0, 7, device=0, stream=7, correlation=5, **{"External id": 77})

    assert works(asked, alone)[0].flop == 210


def test_each_text_is_worked_out_once(monkeypatch):
    seen = []
    monkeypatch.setattr(operators, "demand_of", lambda asked: seen.append(asked) or demand_of(asked))
    works(
        *(operator("aten::mm", [[3, 5], [5, 7]], FLOATS[:2], ts=100 * k) for k in range(3)),
        *(e for k in range(3) for e in launched(GEMM, ts=100 * k + 10, first=k + 1)),
    )

    assert len(seen) == 1


def test_a_file_says_the_same_as_loaded_events(tmp_path):
    events = [convolution_backward(), *launched("cudnn_dgrad", "cudnn_wgrad")]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))

    assert [s.work for s in read(path).on(Activity.KERNEL)] == works(*events)


# --- what follows ---------------------------------------------------------------------------------------------------


def on_v100(*events):
    return read({"deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-16GB"}], "traceEvents": list(events)})


def test_a_copy_at_half_the_bandwidth_is_half_memory_bound():
    n = round(card("V100-SXM2-16GB").bandwidth_bytes_per_s * 100e-6 / 8)  # read and written in 100 of 200 µs
    timeline = on_v100(operator("aten::copy_", [[n], [n]], FLOATS[:2]), *launched("elementwise_kernel", long_us=200))
    ledger = charge(timeline)

    assert ledger.share(Account.MEMORY_BOUND) == pytest.approx(0.5, rel=1e-3)


def test_a_product_at_half_the_peak_has_an_mfu_of_a_half():
    long_us = round(2 * 2 * 4096**3 / card("V100-SXM2-16GB").top_peak_flop_per_s * 1e6)
    asked = operator("aten::mm", [[4096, 4096]] * 2, ["c10::Half"] * 2)
    timeline = on_v100(asked, *launched("volta_fp16_s884gemm_fp16_128x128", long_us=long_us))

    assert charge(timeline).mfu == pytest.approx(0.5, rel=1e-3)


def test_fp32_numbers_on_tensor_cores_are_tf32():
    asked = operator("aten::mm", [[64, 64]] * 2, FLOATS[:2])

    assert works(asked, *launched("cutlass_80_tensorop_s1688gemm_64x64"))[0].number_format == "tf32"


def test_why_there_is_no_mfu_is_said_in_the_traces_own_terms():
    timeline = on_v100(operator("fbgemm::permute", [[3]], ["float"]), *launched("k"))

    assert "fbgemm::permute: the operator isn't torch's own" in charge(timeline).reasons["mfu"]


def test_a_saved_timeline_keeps_why_and_whether_a_graph_ran_it(tmp_path):
    graph = launched("g", first=50)
    graph[0]["name"] = "cudaGraphLaunch"
    timeline = read([operator("fbgemm::permute", [[3]], ["float"]), *launched("k"), *graph])
    timeline_file.save(timeline, tmp_path / "t.json")

    assert timeline_file.load(tmp_path / "t.json") == timeline


def test_recorded_traces_with_shapes_say_the_flop_of_all_their_kernels(shared):
    timeline = read(shared / "traces" / "h100-bert-small.json.gz")

    assert all(s.work.flop is not None for s in timeline.on(Activity.KERNEL))
