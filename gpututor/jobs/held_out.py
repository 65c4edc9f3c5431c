"""How well a translator's weights translate sentences that it never saw, reckoned in numpy from the weights alone.

No torch, no device and none of the code that trained them: whoever judges a training asks here. The right word is
always given (no word is fed back), and nothing is dropped out. Source of the layers: the documentation of torch.nn.GRU,
and the attention of PyTorch's tutorial "Translation with a Sequence to Sequence Network and Attention".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gpututor.jobs.numbering import START, Rows

Weights = Mapping[str, npt.NDArray[np.float32]]
"""By the names that torch gives them, such as "encoder.gru.weight_ih_l0"."""

NAMES = (
    *(f"encoder.{name}" for name in ("embedding.weight", "gru.weight_ih_l0", "gru.weight_hh_l0")),
    *(f"encoder.{name}" for name in ("gru.bias_ih_l0", "gru.bias_hh_l0")),
    *(f"decoder.{name}" for name in ("embedding.weight", "attn.weight", "attn.bias")),
    *(f"decoder.{name}" for name in ("attn_combine.weight", "attn_combine.bias")),
    *(f"decoder.{name}" for name in ("gru.weight_ih_l0", "gru.weight_hh_l0", "gru.bias_ih_l0", "gru.bias_hh_l0")),
    *(f"decoder.{name}" for name in ("out.weight", "out.bias")),
)


def loss_of(weights: Weights, rows: Rows) -> float:
    """The mean loss of a word, in nats; infinite where the weights aren't numbers."""
    with np.errstate(all="ignore"):
        read, state = _read(weights, rows)
        total = _written(weights, rows, read, state)
    mean = float(total) / int(rows.n_english.sum())
    return mean if np.isfinite(mean) else float("inf")


def _read(weights: Weights, rows: Rows) -> tuple[Any, Any]:
    """What the encoder says of each word, (sentences, places, hidden), and its state at each sentence's end."""
    n, places = rows.french.shape
    hidden = weights["encoder.gru.weight_hh_l0"].shape[1]
    state = np.zeros((n, hidden), np.float32)
    read = np.zeros((n, places, hidden), np.float32)
    for t in range(int(rows.n_french.max())):
        new = _gru(weights, "encoder", weights["encoder.embedding.weight"][rows.french[:, t]], state)
        there = (t < rows.n_french)[:, None]
        state = np.where(there, new, state)
        read[:, t] = np.where(there, new, 0.0)
    return read, state


def _written(weights: Weights, rows: Rows, read: Any, state: Any) -> float:
    """The summed loss of all words that the decoder is to write."""
    word, total = np.full(len(rows), START), 0.0
    for t in range(int(rows.n_english.max())):
        embedded = weights["decoder.embedding.weight"][word]
        attention = _softmax(_linear(weights, "decoder.attn", np.concatenate((embedded, state), 1)))
        seen = np.einsum("np,nph->nh", attention[:, : read.shape[1]], read)
        mixed = np.maximum(_linear(weights, "decoder.attn_combine", np.concatenate((embedded, seen), 1)), 0.0)
        state = _gru(weights, "decoder", mixed, state)
        scores = _linear(weights, "decoder.out", state)
        top = scores.max(1, keepdims=True)
        norm = top[:, 0] + np.log(np.exp(scores - top).sum(1))
        word = rows.english[:, t]
        missed = norm - scores[np.arange(len(word)), word]
        total += float(missed[t < rows.n_english].sum())
    return total


def _linear(weights: Weights, name: str, x: Any) -> Any:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _gru(weights: Weights, half: str, x: Any, state: Any) -> Any:
    from_x = x @ weights[f"{half}.gru.weight_ih_l0"].T + weights[f"{half}.gru.bias_ih_l0"]
    from_state = state @ weights[f"{half}.gru.weight_hh_l0"].T + weights[f"{half}.gru.bias_hh_l0"]
    (r_x, z_x, n_x), (r_s, z_s, n_s) = (np.split(each, 3, axis=1) for each in (from_x, from_state))
    z = _sigmoid(z_x + z_s)
    return (1 - z) * np.tanh(n_x + _sigmoid(r_x + r_s) * n_s) + z * state


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)
