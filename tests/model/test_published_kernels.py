"""Our times beside published measurements; the bounds are what a like model reached on these tables, rounded up.

Times in these tables contain the launch: 2.5 to 6 us in DeepBench's loops, 20 to 30 us and 6 to 10 us in NeuSight's.
"""

from __future__ import annotations

import csv
import gzip
import json
from functools import cache
from statistics import median

import pytest

from gpututor.cards import card
from gpututor.model.cost import price
from gpututor.model.lowering import lower
from gpututor.model.spec import Gemm, OpCall, Stream, TensorMeta

DEEPBENCH_LAUNCH_NS, NEUSIGHT_PRODUCT_NS, NEUSIGHT_WALK_NS = 2_000, 20_000, 7_000
INPUTS = {"add": 2, "mul": 2, "div": 2}  # the others of the table read one tensor


@cache
def rows(shared, name):
    with gzip.open(shared / "measured" / name, "rt", newline="") as text:
        return tuple(csv.DictReader(text))


def deepbench_errors(shared, gpu, precision, card_name, number_format):
    itemsize = 2 if number_format == "fp16" else 4
    for row in rows(shared, "deepbench_gemm.csv.gz"):
        if row["gpu"] == gpu and row["precision"].startswith(precision):
            m, n, k = (int(float(row[c])) for c in "mnk")  # the benchmark pads fp16 sizes to multiples of 8
            spec = Gemm("g", m, n, k, (m * k + k * n + m * n) * itemsize, number_format)
            predicted_ns = price(spec, card(card_name)).duration_ns + DEEPBENCH_LAUNCH_NS
            yield abs(predicted_ns / (float(row["time_ms"]) * 1e6) - 1)


@pytest.mark.parametrize(
    ("gpu", "precision", "card_name", "number_format", "bound"),
    [
        pytest.param("NV_V100", "Results FP32", "V100-SXM2-16GB", "fp32", 0.10, id="V100 fp32"),
        pytest.param("NV_V100", "Results - FP16", "V100-SXM2-16GB", "fp16", 0.12, id="V100 fp16"),
        pytest.param("NV_T4", "Results FP32", "T4", "fp32", 0.18, id="T4 fp32"),
    ],
)
def test_deepbench_products_are_met_in_the_median(shared, gpu, precision, card_name, number_format, bound):
    errors = list(deepbench_errors(shared, gpu, precision, card_name, number_format))

    assert len(errors) >= 100
    assert median(errors) < bound


CELLS = {"LSTM": "lstm", "GRU": "gru", "Vanilla": "rnn_tanh"}
GAP_NS = 800  # the queue's, after each kernel


def deepbench_rnn_errors(shared, cell, number_format, direction, column):
    short = number_format == "float16"
    for row in rows(shared, "deepbench_rnn.csv.gz"):
        if (row["gpu"], row["cell"]) != ("NV_V100", cell) or short != ("ip" in row["precision"]):
            continue
        if not (row["hidden"] and row[column]) or float(row["timesteps"]) < 2:
            continue
        hidden, batch = int(float(row["hidden"])), int(float(row["batch"]))
        sizes = {"seq": 2, "batch": batch, "input": hidden, "hidden": hidden, "layers": 1, "directions": 1}
        call = {"mode": CELLS[cell], "dtype": number_format, "skip_input": True} | sizes
        kernels = lower(OpCall(f"gpututor.rnn.{direction}", (), tuple(call.items()))).kernels
        two_steps_ns = sum(
            price(kernel, card("V100-SXM2-16GB")).duration_ns + GAP_NS
            for kernel in kernels
            if kernel.name in ("rnn step", "rnn gates", "rnn gates backward")
        )
        yield abs(two_steps_ns / 2 * float(row["timesteps"]) / (float(row[column]) * 1e6) - 1)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("number_format", ["float32", "float16"])
@pytest.mark.parametrize(("direction", "column"), [("forward", "fwd_ms"), ("backward", "bwd_inputs_ms")])
def test_deepbench_recurrent_layers_are_met_in_the_median(shared, cell, number_format, direction, column):
    errors = list(deepbench_rnn_errors(shared, cell, number_format, direction, column))

    assert len(errors) >= 10
    assert median(errors) < 0.20  # the constants were fitted on these rows: 18 % with a hidden size left out


def neusight(shared, family, device):
    return [r for r in rows(shared, "neusight_kernels.csv.gz") if r["family"] == family and r["Device"] == device]


@pytest.mark.parametrize(
    ("device", "card_name"),
    [("Tesla V100-PCIE-32GB", "V100-PCIe-32GB"), ("NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB")],
)
def test_neusight_linear_layers_are_met_in_the_median(shared, device, card_name):
    assert median(product_errors(neusight(shared, "linear", device), card_name)) < 0.06


def product_errors(rows, card_name):
    """The table's N is the inner dimension and its K the result's columns, as its launch grids show."""
    for row in rows:
        m, k, n = (int(float(row[c])) for c in "MNK")
        batch = int(float(row["B"])) if row["family"] == "bmm" else 1
        spec = Gemm("g", m, n, k, batch * (m * k + k * n + m * n) * 4, batch=batch)
        predicted_ns = price(spec, card(card_name)).duration_ns + NEUSIGHT_PRODUCT_NS
        yield abs(predicted_ns / (float(row["latency_ms"]) * 1e6) - 1)


def test_neusights_columns_of_a_batch_are_its_k(shared):
    """Tiles of 128 by 128 on an A100: the grid counts columns and rows of the result."""
    grids = [
        tuple(int(float(row[c])) for c in ("Grid x", "Grid y", "K", "M"))
        for row in neusight(shared, "bmm", "NVIDIA A100-PCIE-40GB")
    ]

    assert len(grids) > 1000
    assert all((x, y) == (-(-columns // 128), -(-rows // 128)) for x, y, columns, rows in grids)


@pytest.mark.parametrize(
    ("device", "card_name", "bound"),
    [
        ("Tesla V100-PCIE-32GB", "V100-PCIe-32GB", 0.09),
        ("NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB", 0.06),
        ("NVIDIA H100 80GB HBM3", "H100-SXM", 0.09),
        ("Tesla P100-PCIE-16GB", "P100-PCIe", 0.16),
    ],
)
def test_neusight_batches_of_products_are_met_in_the_median(shared, device, card_name, bound):
    rows = neusight(shared, "bmm", device)[::7]

    assert median(product_errors(rows, card_name)) < bound


def row_errors(rows, name, card_name):
    for row in rows:
        x = TensorMeta.contiguous(int(float(row["B"])), int(float(row["H"])))
        arguments = (x, -1, False) if name == "aten._softmax.default" else (x, (x.shape[1],), None, None, 1e-5)
        (kernel,) = lower(OpCall(name, arguments, (), (x,))).kernels
        predicted_ns = price(kernel, card(card_name)).duration_ns + NEUSIGHT_WALK_NS
        yield abs(predicted_ns / (float(row["latency_ms"]) * 1e6) - 1)


@pytest.mark.parametrize(
    ("device", "card_name"),
    [("Tesla V100-PCIE-32GB", "V100-PCIe-32GB"), ("Tesla T4", "T4"), ("NVIDIA L4", "L4")],
)
@pytest.mark.parametrize(
    ("family", "name"), [("softmax", "aten._softmax.default"), ("ln", "aten.native_layer_norm.default")]
)
def test_neusight_rows_that_are_read_again_are_met_in_the_median(shared, device, card_name, family, name):
    errors = list(row_errors(neusight(shared, family, device), name, card_name))

    assert len(errors) > 70
    assert median(errors) < 0.15


def elementwise(row):
    n = int(float(row["B"])) * int(float(row["H"]))
    return Stream(row["OPName"], 4 * n * (INPUTS.get(row["OPName"], 1) + 1), n)


def test_neusight_elementwise_kernels_are_met_in_the_median(shared):
    errors = []
    for row in neusight(shared, "elem", "Tesla V100-PCIE-32GB"):
        predicted_ns = price(elementwise(row), card("V100-PCIe-32GB")).duration_ns + NEUSIGHT_WALK_NS
        errors.append(abs(predicted_ns / (float(row["latency_ms"]) * 1e6) - 1))

    assert median(errors) < 0.05


def test_recorded_elementwise_kernels_have_our_number_of_blocks(shared):
    v100 = card("V100-PCIe-32GB")
    found = [
        (price(elementwise(row), v100).work.n_blocks, int(float(row["Grid x"])))
        for row in neusight(shared, "elem", "Tesla V100-PCIE-32GB")
        if "vectorized_elementwise_kernel<4" in row["Kernel Name"] and float(row["B"]) * float(row["H"]) < 2**29
    ]

    assert len(found) > 1000
    assert sum(ours == theirs for ours, theirs in found) / len(found) > 0.99


def test_a_recorded_resnets_list_operators_take_our_number_of_launches(shared):
    with gzip.open(shared / "traces" / "v100-ns-healthy.json.gz", "rt") as text:
        events = json.load(text)["traceEvents"]
    calls = [e for e in events if e.get("ph") == "X" and e["name"] == "aten::_foreach_add_"]
    starts = [float(e["ts"]) for e in events if e.get("name") == "cudaLaunchKernel"]
    recorded = {sum(float(c["ts"]) <= at <= float(c["ts"]) + float(c["dur"]) for at in starts) for c in calls}
    parameters = tuple(TensorMeta.contiguous(n) for n in resnet50_parameters())

    ours = len(lower(OpCall("aten._foreach_add_.List", (parameters, parameters), outs=parameters)).kernels)
    assert recorded == {ours}


def resnet50_parameters():
    """Sizes of ResNet-50's 161 parameters in order (He et al. 2015, table 1, as torchvision builds it)."""
    found = [64 * 3 * 49, 64, 64]
    width_in = 64
    for width, n_blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(n_blocks):
            found += [width_in * width, width, width, 9 * width * width, width, width]
            found += [4 * width * width, 4 * width, 4 * width]
            if block == 0:
                found += [4 * width * width_in, 4 * width, 4 * width]
            width_in = 4 * width
    return [*found, 2048 * 1000, 1000]


def test_resnet50_is_listed_with_its_published_number_of_parameters():
    assert sum(resnet50_parameters()) == 25_557_032
