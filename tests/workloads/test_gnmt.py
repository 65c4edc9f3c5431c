"""GNMT is the network that was measured, and its batches are the ones that it trained on."""

from __future__ import annotations

import pytest
import torch

from gpututor.model.tape import CopyCall, TapeOp
from gpututor.simgpu.recording import tape_steps
from gpututor.workloads.setting import Setting
from gpututor.workloads.translation.gnmt import GNMT, Gnmt, smoothed_loss
from gpututor.workloads.translation.gnmt_batches import LONGEST, ROUND, TOKENS_PER_PAIR, batch_of, buckets_of


@pytest.mark.parametrize(("n_words", "n_params"), [(31794, 159_593_523), (31800, 159_605_817)])
def test_parameters_are_those_its_logs_print(n_words, n_params):
    with torch.device("meta"):
        net = Gnmt(n_words)

    assert sum(p.numel() for p in net.parameters()) == n_params


def test_a_round_has_the_measured_tokens_a_pair_within_two_percent():
    mean = sum(TOKENS_PER_PAIR[bucket] for bucket in ROUND) / len(ROUND)

    assert mean == pytest.approx(47.7, rel=0.02)


def test_a_step_may_be_one_bucket_alone():
    assert buckets_of(4) == (3,)


@pytest.mark.parametrize("bucket", range(5))
def test_lengths_fall_from_the_longest_and_add_up_to_the_tokens(bucket):
    batch = batch_of(bucket, 128)
    counted = int(batch.source_lengths.sum() + (batch.target_lengths - 1).sum())

    assert batch.source_lengths[0] == LONGEST[bucket] == batch.source.shape[0]
    assert torch.equal(batch.source_lengths, batch.source_lengths.sort(descending=True).values)
    assert counted == pytest.approx(batch.n_tokens, rel=0.02)


def test_the_smoothed_loss_leaves_padding_out():
    scores, labels = torch.randn(6, 9), torch.tensor([3, 1, 0, 2, 0, 8])
    kept = labels != 0
    expected = torch.nn.functional.cross_entropy(scores[kept], labels[kept], label_smoothing=0.1, reduction="sum")

    assert torch.allclose(smoothed_loss(scores, labels), expected)


def entries(**options: int) -> list[object]:
    setting = Setting("train", 8, "amp", options={"words": 64, "bucket": 1, **options})
    job = []

    def step(k: int) -> object:
        if not job:
            job.append(GNMT.build(setting, "simgpu"))
        return job[0].step(k)

    return tape_steps(step, n_steps=1, warmup=1, numerics=False).entries


def test_source_lengths_are_summed_on_the_card_one_by_one():
    ops = [e.name for e in entries() if isinstance(e, TapeOp)]
    at = ops.index("unbind")

    assert ops[at + 1 : at + 9] == ["add"] * 8


def test_the_host_reads_lengths_loss_and_overflow_each_step():
    reads = [e for e in entries() if isinstance(e, CopyCall) and not e.to_gpu]

    assert len(reads) >= 4  # the sum, the lengths for packing, the loss, the overflow flag
