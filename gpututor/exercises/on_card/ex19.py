"""Exercise 19.2 in the learner's process: a whole training of a small translator, under CUDA's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpututor.exercises.on_card.ex19_data import HIDDEN
from gpututor.lab.on_card import laid, recorded


def run(
    train: Callable[..., Any],
    machine: str,
    sentences: Any,
    n_words: Sequence[int],
    n_french: Sequence[int],
    n_english: Sequence[int],
    *,
    card_fd: int | None = None,
) -> dict[str, Any]:
    """What the training launched, and the model's weights after it, by name."""
    import torch
    from torch import nn

    from gpututor.jobs.seq2seq import AttentionDecoder, Encoder
    from gpututor.simgpu import as_cuda

    def make() -> Callable[[], Any]:
        french, english = laid(sentences)
        torch.manual_seed(0)
        encoder, decoder = Encoder(n_words[0], HIDDEN), AttentionDecoder(n_words[1], HIDDEN)
        model = nn.ModuleDict({"encoder": encoder, "decoder": decoder}).to("simgpu")
        parameters = dict(model.named_parameters())

        def work() -> dict[str, Any]:
            with as_cuda():
                train(encoder, decoder, french, english, list(n_french), list(n_english))
            return {name: each.detach() for name, each in parameters.items()}

        return work

    return recorded(machine, make, card_fd=card_fd)
