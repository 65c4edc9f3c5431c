"""BERT at work: fine-tuning on SQuAD and pre-training as NVIDIA's scripts do it, and Hugging Face's networks."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gpututor.workloads.apex_parallel import ApexParallel
from gpututor.workloads.language.bert import BASE, LARGE, STYLES, Answering, Classifying, Pretraining, Size, padded
from gpututor.workloads.language.gathering import gathering
from gpututor.workloads.language.updates import BertAdam, FusedAdamO2, HalfLamb
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import prepared, steps

F = nn.functional


def _half(setting: Setting) -> bool:
    return setting.precision in ("amp", "fp16")


def batch_of(setting: Setting) -> int:
    """The batch, which a workload's maker is always given."""
    assert setting.batch is not None
    return setting.batch


def _squad(size: Size, setting: Setting, device: str) -> Job:
    """A step of run_squad.py: five tensors come unpinned from the host, and the host waits for the loss."""
    batch = batch_of(setting)
    if _half(setting):
        setting = replace(setting, precision="fp16")  # "amp" in its tables is apex's O2
    length, style = int(setting.options["length"]), STYLES[str(setting.options["style"])]
    words = torch.randint(0, size.words, (3, batch, length), device="cpu")
    ids, parts, seen = words[0], torch.zeros_like(words[1]), torch.ones_like(words[2])
    ends = torch.randint(0, length, (2, batch), device="cpu").unbind(0)
    with torch.device(device):
        net = prepared(Answering(padded(size), style), setting, ApexParallel)
        if setting.kind == "infer":
            there = ids.to(device), parts.to(device), seen.to(device)
            return Job(steps(net, lambda: net(*there), setting, device, None), batch)
        o2 = FusedAdamO2(net) if _half(setting) else None
    adam = None if o2 else BertAdam(net.parameters(), style.clipping_waits)

    def step(k: int) -> Tensor:
        *inputs, first, last = [t.to(device) for t in (ids, parts, seen, *ends)]
        scores = net(*inputs)
        loss: Tensor = (F.cross_entropy(scores[0], first) + F.cross_entropy(scores[1], last)) / 2
        if o2:
            o2.backward(loss)
        else:
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without annotations
        if setting.kind == "train" and o2:
            o2.step()
        elif setting.kind == "train" and adam:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True).item()
            adam.step()
        if adam:
            net.zero_grad(set_to_none=False)
        loss.item()
        return loss

    return Job(step, batch)


def _pretrain(setting: Setting, device: str) -> Job:
    """A micro-batch of run_pretraining.py in fp16, whose gradients gather; LAMB follows each `accumulate`-th one.

    The host waits while the places of the hidden words are counted. Several cards exchange all gradients at once, in
    the backward pass before LAMB alone.
    """
    batch = batch_of(setting)
    accumulate, length = int(setting.options["accumulate"]), int(setting.options["length"])
    size, setting = padded(LARGE), replace(setting, precision="fp16") if _half(setting) else setting
    n_hidden = round(batch * length * HIDDEN_SHARE)
    with torch.device(device):
        net = prepared(Pretraining(size, STYLES[str(setting.options["style"])]), setting, _in_one_bucket)
        ids = torch.randint(0, size.words, (batch, length))
        parts, seen, place = torch.zeros_like(ids), torch.ones_like(ids), torch.ones(1, dtype=torch.int64)
        places, labels = torch.arange(n_hidden), torch.randint(0, size.words, (n_hidden,))
        follows = torch.zeros(batch, dtype=torch.int64)
        lamb = HalfLamb(net)

    def step(k: int) -> Tensor:
        place.nonzero()
        is_last = k % accumulate == accumulate - 1
        with net.no_sync() if isinstance(net, DistributedDataParallel) and not is_last else nullcontext():
            scores, belongs = net(ids, parts, seen, places)
            loss = F.cross_entropy(scores, labels) + F.cross_entropy(belongs, follows)
            loss.backward()  # type: ignore[no-untyped-call]
        if setting.kind == "train" and is_last:
            lamb.step()
        return loss

    return Job(step, batch)


def _in_one_bucket(net: nn.Module) -> nn.Module:
    """DDP as run_pretraining.py makes it: the card's whole memory as the bucket's limit, gradients that are views."""
    return DistributedDataParallel(net, bucket_cap_mb=1 << 20, gradient_as_bucket_view=True)


# 15 % of the words are hidden, at most 20 of 128 and 80 of 512 (Devlin et al. 2018, section 3.1 and appendix A.2)
HIDDEN_SHARE = 0.15


def _hugging_face(size: Size, setting: Setting, device: str) -> Job:
    """Classification for inference and both pre-training tasks for training, as NeuSight ran them."""
    batch = batch_of(setting)
    length, style = int(setting.options["length"]), STYLES[str(setting.options["style"])]
    with torch.device(device):
        net = prepared((Classifying if setting.kind == "infer" else Pretraining)(size, style), setting)
        ids = torch.ones(batch, length, dtype=torch.int64)
        parts = torch.zeros_like(ids)

    def scores() -> Tensor:
        found = net(ids, parts, torch.ones(batch, length, device=device))
        words: Tensor = found[0] if isinstance(found, tuple) else found
        return words

    return Job(gathering(net, scores, ids, setting, device), batch)


def squad(name: str, size: Size, batch: int) -> Workload:
    """Fine-tuning on SQuAD at one size."""

    def make(setting: Setting, device: str) -> Job:
        return _squad(size, setting, device)

    return Workload(
        name,
        "fine-tuning BERT on SQuAD 1.1 as NVIDIA's script does: fused Adam with fp32 masters if half, else BertAdam",
        "NVIDIA/DeepLearningExamples PyTorch/LanguageModeling/BERT, run_squad.py",
        "seq",
        batch,
        make,
        {"length": 384, "style": "dle2022"},
    )


def hugging_face(name: str, size: Size, batch: int) -> Workload:
    """Hugging Face's BERT at one size."""

    def make(setting: Setting, device: str) -> Job:
        return _hugging_face(size, setting, device)

    return Workload(
        name,
        "BERT of Hugging Face's transformers: classification for inference, both pre-training tasks for training",
        "huggingface/transformers 4.38, models/bert/modeling_bert.py; sitar-lab/NeuSight neusight/Tracing/trace.py",
        "seq",
        batch,
        make,
        {"length": 512, "style": "hf2023"},
    )


BERT_BASE_SQUAD, BERT_LARGE_SQUAD = squad("bert-base-squad", BASE, 32), squad("bert-large-squad", LARGE, 32)
BERT_BASE, BERT_LARGE = hugging_face("bert-base", BASE, 8), hugging_face("bert-large", LARGE, 8)
BERT_LARGE_PRETRAINING = Workload(
    "bert-large-pretraining",
    "pre-training BERT-large with LAMB as NVIDIA's script does; length 128 in its first phase, 512 in its second",
    "NVIDIA/DeepLearningExamples PyTorch/LanguageModeling/BERT, run_pretraining.py at a9e2c1d5",
    "seq",
    256,
    _pretrain,
    {"length": 128, "accumulate": 32, "style": "dle2022-nvfuser"},
    ("train", "gradients"),
)
BERTS = (BERT_BASE, BERT_LARGE, BERT_BASE_SQUAD, BERT_LARGE_SQUAD, BERT_LARGE_PRETRAINING)
