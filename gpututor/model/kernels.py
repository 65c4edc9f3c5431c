"""The kinds of kernel that the cost model knows, said without naming a card."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gemm:
    """`batch` matrix products of (m, k) by (k, n), run as tiles.

    `moved_bytes` is the least traffic: each operand read once and the result written once. `aligned_to` is the
    largest power of two, up to 16, that divides every operand's row length in memory, in elements.
    """

    name: str
    m: int
    n: int
    k: int
    moved_bytes: int
    number_format: str = "fp32"
    batch: int = 1
    tf32: bool = False
    aligned_to: int = 16

    @property
    def flop(self) -> int:
        """Floating point operations, a multiply-add counted as two."""
        return 2 * self.batch * self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class Conv:
    """One pass of a convolution: "fprop", "dgrad" (to the input) or "wgrad" (to the weights).

    Sizes of more than two space dimensions are multiplied together. `pixels_in` and
    `pixels_out` count one image. `moved_bytes` holds each tensor once. Where a 3x3 filter moves in single steps, so
    that Winograd's method applies, `winograd_rows` and `winograd_columns` are the size of the image that the pass
    computes (of the gradient it reads, for "wgrad"); elsewhere they are 0. With `trials` it runs as often for cuDNN to
    find its quickest algorithm, and what it computes is of no use.
    """

    name: str
    direction: str
    batch: int
    c_in: int
    c_out: int
    pixels_in: int
    pixels_out: int
    filter_taps: int
    moved_bytes: int
    groups: int = 1
    number_format: str = "fp32"
    tf32: bool = False
    channels_last: bool = False
    winograd_rows: int = 0
    winograd_columns: int = 0
    trials: int = 0

    @property
    def flop(self) -> int:
        """Floating point operations of the direct method, a multiply-add as two, zeros of the padding included."""
        return 2 * self.batch * self.pixels_out * self.c_out * self.filter_taps * (self.c_in // self.groups)


@dataclass(frozen=True, slots=True)
class Stream:
    """A kernel that walks over elements, one after another: elementwise work, copies between layouts, updates."""

    name: str
    moved_bytes: int
    n_elements: int
    flop: int = 0
    number_format: str = "fp32"
    elements_per_block: int = 512
    threads_per_block: int = 128


@dataclass(frozen=True, slots=True)
class RowReduce:
    """A kernel whose thread blocks each work on rows (softmax, layer norm, sums, one channel of a batch norm).

    `split` allows several blocks to share one row, as torch's sums do when rows are few and long.
    `moved_bytes` counts every tensor once; `again_bytes` is what blocks read once more, after `row_bytes` of each row.
    `numbers_a_thread` is how many a thread asks memory for at a time.
    """

    name: str
    n_rows: int
    row_length: int
    moved_bytes: int
    flop: int = 0
    number_format: str = "fp32"
    rows_per_block: int = 1
    threads_per_block: int = 256
    split: bool = False
    again_bytes: int = 0
    row_bytes: int = 0
    numbers_a_thread: int = 4


@dataclass(frozen=True, slots=True)
class RnnStep:
    """One time step's recurrent product of a cuDNN layer: (batch, hidden) by (hidden, gates x hidden).

    `backward` is the same step of the gradient with respect to the data. `at_once` such products run side by side, in
    streams of cuDNN's own; each of them counts as its part of the time that all take.
    """

    name: str
    gates: int
    batch: int
    hidden: int
    number_format: str = "fp32"
    backward: bool = False
    tf32: bool = False
    at_once: int = 1

    @property
    def flop(self) -> int:
        """Floating point operations, a multiply-add counted as two."""
        return 2 * self.gates * self.hidden * self.hidden * self.batch


@dataclass(frozen=True, slots=True)
class RnnLayer:
    """All time steps of a cuDNN layer in one direction, where the card decides how they run (costs/rnn_layer.py).

    Either one persistent kernel, or for each step a product and the gates.
    """

    name: str
    mode: str  # "lstm", "gru", "rnn_tanh", "rnn_relu"
    gates: int
    seq: int
    batch: int
    hidden: int
    number_format: str = "fp16"
    backward: bool = False

    @property
    def flop(self) -> int:
        """Floating point operations of the products, a multiply-add counted as two."""
        return 2 * self.gates * self.hidden * self.hidden * self.batch * self.seq


@dataclass(frozen=True, slots=True)
class Attention:
    """A fused attention kernel: scores stay on the chip. Sizes count one head; `heads` counts batch x heads."""

    name: str
    heads: int
    rows: int
    columns: int
    width: int
    moved_bytes: int
    number_format: str = "fp16"
    tf32: bool = False
    causal: bool = False
    backward: bool = False

    @property
    def flop(self) -> int:
        """Floating point operations: two products forward, five backward; a causal mask halves them.

        Source: Dao et al. 2022, "FlashAttention" (algorithms 1 and 4).
        """
        products = 5 if self.backward else 2
        full = 2 * products * self.heads * self.rows * self.columns * self.width
        return full // 2 if self.causal else full


@dataclass(frozen=True, slots=True)
class DeviceCopy:
    """A plain copy inside GPU memory; `moved_bytes` counts what is read and what is written."""

    name: str
    moved_bytes: int


@dataclass(frozen=True, slots=True)
class Memset:
    """Filling memory with one byte value; `moved_bytes` is what is written."""

    name: str
    moved_bytes: int
