"""Training the Transformer on WMT14 English-German in batches of so many tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.apex_parallel import ApexParallel
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import autocast, prepared, steps
from gpututor.workloads.translation.transformer import BASE, BIG, PADDING, Size, Transformer

F = nn.functional
SMOOTHING = 0.1  # scripts/run_DGXA100_AMP.sh, --label-smoothing
# Sentences are sorted by source and then by target length; as many go into a batch as fit `max-tokens` when each takes
# its longer side (fairseq/data/csrc/make_batches.cpp). So a batch has next to no padding, and both sides are a little
# shorter than the limit allows: 25,000 of 28,672 tokens in Ott et al. 2018, arXiv 1806.00187, section 4.1; 30,000 of
# 32,768 in LiyuanLucasLiu/Transformer-Clinic, issue 6. Lengths are ours: about 29 tokens in 32 places, a share of 0.9.
LENGTH, PLACES = 29, 32


def smoothed(scores: Tensor, targets: Tensor) -> Tensor:
    """The sum of label-smoothed losses, from fp32 log-probabilities. Source: fairseq/criterions.py."""
    logs = F.log_softmax(scores, dim=-1, dtype=torch.float32)
    logs, targets = logs.view(-1, logs.shape[-1]), targets.view(-1, 1)
    real = targets.ne(PADDING)
    right = -logs.gather(dim=-1, index=targets)[real]
    all_words = -logs.sum(dim=-1, keepdim=True)[real]
    return (1.0 - SMOOTHING) * right.sum() + SMOOTHING / logs.shape[-1] * all_words.sum()


def _train(size: Size, setting: Setting, device: str) -> Job:
    """ddp_trainer.py: gradients of a sum are divided by the tokens one by one; the host waits four times a step."""
    assert setting.batch is not None
    length, places = int(setting.options["length"]), int(setting.options["places"])
    n_sentences = max(8, setting.batch // places // 8 * 8)
    n_tokens = n_sentences * length  # as its log counts them: the target's, without padding
    source, shown, targets = torch.randint(4, size.words, (3, n_sentences, length), device="cpu").unbind(0)
    with torch.device(device):
        net = prepared(Transformer(size), setting, ApexParallel)
    if setting.kind == "infer":
        there = source.to(device), shown.to(device)
        return Job(steps(net, lambda: net(*there), setting, device, None), n_tokens)
    adam = torch.optim.Adam(net.parameters(), lr=6e-4, betas=(0.9, 0.997), eps=1e-9, fused=True)
    scaler = torch.amp.GradScaler(device, enabled=setting.precision == "amp")

    def step(k: int) -> Tensor:
        here = [t.to(device) for t in (source, shown, targets)]
        with autocast(setting, device):
            loss = smoothed(net(*here[:2]), here[2])
        loss.item()
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        for p in net.parameters():
            if p.grad is not None:
                p.grad /= n_tokens
        if setting.kind == "train":
            scaler.unscale_(adam)
            scaler.step(adam)
            scaler.update()
        net.zero_grad(set_to_none=True)
        torch.get_device_module(device).synchronize()  # its meter of tokens per second
        return loss

    return Job(step, n_tokens)


def _workload(name: str, size: Size) -> Workload:
    return Workload(
        name,
        "the Transformer on WMT14 English-German, batches by tokens, label smoothing, fused norms and Adam",
        "NVIDIA/DeepLearningExamples PyTorch/Translation/Transformer at 729963d",
        "tok",
        5120,
        lambda setting, device: _train(size, setting, device),
        {"length": LENGTH, "places": PLACES},
    )


TRANSFORMERS = (_workload("transformer-base", BASE), _workload("transformer-big", BIG))
