"""The Switch Transformer that NeuSight timed."""

from __future__ import annotations

import torch
from torch import Tensor

from gpututor.workloads.language.gathering import gathering
from gpututor.workloads.language.switch import XL_4, Switch
from gpututor.workloads.setting import Job, Setting, Workload
from gpututor.workloads.training import prepared

# Words of one sequence that each expert takes, the busiest first. NeuSight feeds the same word everywhere: without
# dropout all words agree at first, and the 64 that their expert had room for differ from then on; with dropout all
# differ. The means are those of our own network of a quarter the width, with the router computed and with Hugging
# Face's initial weights, over its 24 layers with experts and 6 seeds.
ALIKE, DIFFERENT = (64, 14, 0, 0), (64, 46, 21, 4)


def _chosen(batch: int, length: int, counts: tuple[int, ...], device: str) -> list[Tensor]:
    masks, first = [], 0
    for n in counts:
        mask = torch.zeros(batch, length, dtype=torch.bool, device="cpu")
        mask[:, first : first + n] = True
        masks.append(mask.to(device))
        first += n
    return masks


def _job(setting: Setting, device: str) -> Job:
    assert setting.batch is not None
    length = int(setting.options["length"])
    chosen = _chosen(setting.batch, length, ALIKE if setting.kind == "infer" else DIFFERENT, device)
    with torch.device(device):
        net = prepared(Switch(XL_4), setting)
        ids = torch.ones(setting.batch, length, dtype=torch.int64)
    return Job(gathering(net, lambda: net(ids, ids, chosen), ids, setting, device), setting.batch)


SWITCH_XL_4 = Workload(
    "switch-xl-4",
    "a Switch Transformer of 24 and 24 layers with four experts, as Hugging Face's transformers ran it in 2023",
    "huggingface/transformers 4.38 models/switch_transformers; sitar-lab/NeuSight DLmodel_configs/switchxl4.json",
    "seq",
    1,
    _job,
    {"length": 512},
    ("gradients", "infer"),
)
