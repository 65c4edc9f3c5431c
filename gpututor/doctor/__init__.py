"""Is it even running on the GPU, and is the machine healthy? One small check for each thing that goes wrong.

`registry.CHECKS` lists them; `Examination` runs them as soon as each can answer. Nothing on the machine is changed.
"""

from __future__ import annotations

from gpututor.doctor.examination import Examination
from gpututor.doctor.finding import Finding, Probe, State

__all__ = ["Examination", "Finding", "Probe", "State", "this_process"]


def this_process() -> str:
    """The debug switches that are on in the running process, one a line; call it inside your own training script.

    Needs torch, which your script has loaded.
    """
    import os

    import torch

    from gpututor.doctor.facts import Facts, Torch
    from gpututor.doctor.readers import Files
    from gpututor.doctor.surroundings import read_machine
    from gpututor.doctor.switches import CHECKS
    from gpututor.doctor.torch_probe import switches_of

    told = Torch(torch.__version__, cuda=torch.version.cuda, hip=torch.version.hip, switches=switches_of(torch))
    facts = Facts(Files(), dict(os.environ), read_machine(), torch=told)
    found = [finding for check in CHECKS if (finding := check(facts)) is not None and finding.state is not State.PASS]
    lines = [f"{finding.title}: {finding.words}. Do: {finding.remedy}" for finding in found]
    return "\n".join(lines) or "no debug switch is on"
