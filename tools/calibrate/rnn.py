"""Set the constants of recurrent steps from DeepBench's cuDNN timings: `python -m tools.calibrate.rnn`.

The table times one layer's forward pass and its gradient with respect to the data, without the product that feeds the
input. Points that predictions are judged by are left out. Each fit is shown with one hidden size left out, too.
Older cards are those before Volta, measured with cuDNN 6. Persistent kernels have two constants, from two figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from gpututor.cards import Card, card
from gpututor.model import constants
from gpututor.model.cost import price
from gpututor.model.lowering import lower
from gpututor.model.lowering.recurrent import GATES, RULES
from gpututor.model.spec import DeviceCopy, KernelSpec, OpCall, RnnLayer
from tools.calibrate.common import errors, fit, left_out, loss, read

CARDS = {"NV_V100": "V100-SXM2-16GB", "NV_P100": "P100-PCIe", "NV_1080Ti": "GTX-1080Ti"}
MODES = {"LSTM": "lstm", "GRU": "gru", "Vanilla": "rnn_relu"}
GAP_NS = 800
STEPS = frozenset({"rnn step", "rnn gates", "rnn gates backward"})
NAMES = ("fixed_us", "serial_ns", "memory_gain", "flop_share")
# What fits which constants: the cards, the format, the pass and the cells.
FITS = {
    "fp32_forward": (("NV_V100",), "fp32", "fwd", ("LSTM",)),
    "fp16_forward": (("NV_V100",), "fp16", "fwd", ("LSTM", "Vanilla")),
    "fp32_backward": (("NV_V100",), "fp32", "bwd", ("LSTM", "GRU", "Vanilla")),
    "fp16_backward": (("NV_V100",), "fp16", "bwd", ("LSTM", "GRU", "Vanilla")),
    "older": (("NV_P100", "NV_1080Ti"), "fp32", "fwd", ("LSTM",)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One timing: its kernels as the model has them, on which card, and the time per call, set-up taken off."""

    gpu: str
    form: str
    cell: str
    direction: str
    hidden: int
    kernels: tuple[tuple[KernelSpec, int], ...]  # with how often each runs
    on: Card
    measured_ms: float


def is_judged(row: dict[str, str], judged: Sequence[dict[str, str]]) -> bool:
    """Whether this timing is one that predictions are judged by."""
    return row["fwd_ms"] in {point["measured"] for point in judged}


def timings() -> list[Row]:
    """The usable rows of the table."""
    judged = [point for point in read("validation_open.csv") if point["regime"] == "lstm"]
    found = []
    for row in read("deepbench_rnn.csv.gz"):
        form = "fp16" if row["precision"].startswith("Results - FP16") else "fp32"
        if not row["hidden"] or row["gpu"] not in CARDS or "Psuedo" in row["precision"] or is_judged(row, judged):
            continue
        for direction, column in (("fwd", "fwd_ms"), ("bwd", "bwd_inputs_ms")):
            if row[column]:
                found.append(_row(row, form, direction, float(row[column])))
    return found


def _row(row: dict[str, str], form: str, direction: str, measured_ms: float) -> Row:
    hidden, batch, seq = (int(float(row[name])) for name in ("hidden", "batch", "timesteps"))
    sizes = {"seq": 2, "batch": batch, "input": hidden, "hidden": hidden, "layers": 1, "directions": 1}
    given = {**sizes, "mode": MODES[row["cell"]], "dtype": "float16" if form == "fp16" else "float32"}
    given["skip_input"] = True  # DeepBench asks for cuDNN's standard algorithm (code/nvidia/cudnn_helper.h)
    rule = RULES["gpututor.rnn.forward" if direction == "fwd" else "gpututor.rnn.backward"]
    one_step = {k for k in rule(OpCall("rnn", (), tuple(given.items()), ())).kernels if k.name in STEPS}
    kernels = tuple((kernel, seq) for kernel in one_step)
    return Row(row["gpu"], form, row["cell"], direction, hidden, kernels, card(CARDS[row["gpu"]]), measured_ms)


def predicted_ms(row: Row, setup_us: float) -> float:
    """The call's time by the model with the constants as they are, and a set-up before the first step."""
    ns = sum((price(kernel, row.on).duration_ns + GAP_NS) * times for kernel, times in row.kernels)
    return ns / 1e6 + setup_us / 1e3


def chosen(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows that set the constants of this name."""
    gpus, form, direction, cells = FITS[name]
    return [r for r in rows if r.gpu in gpus and (r.form, r.direction) == (form, direction) and r.cell in cells]


def fitted(rows: Sequence[Row], name: str) -> list[float]:
    """The four constants and the set-up in microseconds that describe `rows` best."""
    own = constants.group("rnn")
    start = [getattr(own, f"{name}_{what}") for what in NAMES] + [60.0]

    def cost(values: Sequence[float]) -> float:
        with changed(name, values):
            return loss((predicted_ms(row, values[-1]), row.measured_ms) for row in rows)

    return fit(cost, start, 250)


def changed(name: str, values: Sequence[float]) -> AbstractContextManager[None]:
    """A block in which the constants of this name have these values; cells with a serial part of their own keep it."""
    return constants.other({f"rnn.{name}_{what}": value for what, value in zip(NAMES, values[:-1], strict=True)})


def report(rows: Sequence[Row], name: str) -> None:
    """Print the constants, the error with them and the error with one hidden size left out."""
    own = chosen(rows, name)

    def pairs_by(values: Sequence[float], some: Sequence[Row]) -> list[tuple[float, float]]:
        with changed(name, values):
            return [(predicted_ms(row, values[-1]), row.measured_ms) for row in some]

    def fit_without(some: Sequence[Row]) -> Callable[[Row], tuple[float, float]]:
        values = fitted(some, name)
        return lambda row: pairs_by(values, [row])[0]

    values = fitted(own, name)
    words = "  ".join(f"{what} {value:.3g}" for what, value in zip((*NAMES, "setup_us"), values, strict=True))
    print(f"{name}: {words}\n  fit            {errors(pairs_by(values, own))}")
    print(f"  size left out  {errors(left_out(own, lambda row: str(row.hidden), fit_without))}", flush=True)


# torch's LSTM in fp16: units, sentences, steps; milliseconds forward, and forward and backward, on an H100 SXM. Source:
# NX-AI/flashrnn at d73fb52, head_dim--lstm.svg, and flashrnn/speed_experiments/kernel_speed_benchmark.py (batch first).
PERSISTENT_CARD, PERSISTENT_SIZES, PERSISTENT_MS = "H100-SXM", (768, 16, 1024), (2.01, 5.19)


def persistent() -> None:
    """Print the two constants of persistent kernels that give the two figures."""
    on, (hidden, batch, seq) = card(PERSISTENT_CARD), PERSISTENT_SIZES
    given = {"mode": "lstm", "seq": seq, "batch": batch, "input": hidden, "hidden": hidden, "dtype": "float16"}
    turned = DeviceCopy("batch and steps exchanged", 2 * seq * batch * hidden * 2)
    both_ms = PERSISTENT_MS[0], PERSISTENT_MS[1] - PERSISTENT_MS[0]
    steps_s = []
    for name, total_ms in zip(("forward", "backward"), both_ms, strict=True):
        kernels = lower(OpCall(f"gpututor.rnn.{name}", (), tuple(given.items()), ())).kernels
        (layer,) = (k for k in kernels if isinstance(k, RnnLayer))
        start = replace(layer, seq=1)  # its floor, the weights, and a step
        with constants.other({"rnn.persistent_wait_clocks": 0.0}):
            start_ns = price(start, on).duration_ns
        others_ns = sum(price(k, on).duration_ns + GAP_NS for k in (*kernels, turned) if k is not layer)
        steps_s.append((total_ms * 1e6 - others_ns - start_ns) / (seq - 1) / 1e9)
    state_bytes = batch * hidden * 2
    bytes_per_s = (GATES["lstm"] - 1) * state_bytes / (steps_s[1] - steps_s[0])
    wait_s = steps_s[0] - state_bytes / bytes_per_s
    print(f"persistent: {steps_s[0] * 1e6:.2f} and {steps_s[1] * 1e6:.2f} us a step")
    per_clock, clocks = bytes_per_s / on.boost_clock_hz, wait_s * on.boost_clock_hz
    print(f"  bytes_per_clock {per_clock:.1f}  wait_clocks {clocks:.0f}", flush=True)


def main() -> None:
    """Fit and show every group."""
    persistent()
    rows = timings()
    print(f"{len(rows)} timings of DeepBench")
    for name in FITS:
        report(rows, name)


if __name__ == "__main__":
    main()
