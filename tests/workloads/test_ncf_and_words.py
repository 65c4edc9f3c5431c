"""NCF and the word language model are those of their sources."""

from __future__ import annotations

import pytest
import torch

from gpututor.predict import predict
from gpututor.workloads.recommendation.ncf import NCF, NeuMf
from gpututor.workloads.setting import Setting
from gpututor.workloads.words.word_language_model import N_WORDS, WORD_LANGUAGE_MODEL, WordModel


def test_ncf_has_the_parameters_its_logs_print():
    with torch.device("meta"):
        assert sum(p.numel() for p in NeuMf().parameters()) == 31_832_577


def test_the_word_model_is_an_embedding_two_lstm_layers_and_scores():
    lstm = 2 * (4 * 200 * (200 + 200) + 2 * 4 * 200)
    with torch.device("meta"):
        assert sum(p.numel() for p in WordModel(200, 2).parameters()) == 2 * N_WORDS * 200 + N_WORDS + lstm


@pytest.mark.parametrize("kind", ["train", "gradients", "infer"])
def test_each_is_predicted(kind):
    for workload, batch in ((NCF, 1024), (WORD_LANGUAGE_MODEL, 20)):
        assert predict(workload, Setting(kind, batch, "amp")).per_s > 0


def test_the_word_model_counts_tokens():
    assert predict(WORD_LANGUAGE_MODEL, Setting("infer", 20)).n_per_step == 20 * 35
