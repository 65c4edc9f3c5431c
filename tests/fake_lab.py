"""A lab that runs nothing: drawn timelines for what is measured, and tapes for what is simulated."""

from __future__ import annotations

import shutil
from pathlib import Path

from gpututor import timeline_file
from gpututor.experiments import gauge, measured
from gpututor.lab.job import JobResult
from gpututor.paths import data_dir
from gpututor.progress import Progress
from gpututor.timeline import Label, Origin
from tests.draw import MS, draw

V100 = "V100-SXM2-16GB"
VERSIONS = (("torch", "2.13.0+cu128"), ("driver", "580.65.06"))
LABEL = Label(Origin.MEASURED, V100, "some processor", "a job", VERSIONS)
SHIPPED = data_dir() / "recordings" / "seq2seq.tape.gz"
ABOUT = {"gpu": "Tesla V100-SXM2-16GB", "card": V100, "host": "some processor", "torch": "2.13.0+cu128"}
STEPS = [[9.0 * MS, 5.0]] * 48 + [[7.0 * MS, 4.0]] * 48 + [[8.0 * MS, 3.0]] * 4  # the last four are the recorded ones


def drawn(label: Label = LABEL):
    """Four steps of 8 ms, each with a kernel of 4 ms."""
    return draw(host="aS..bS..cS..dS..", gpu=".aa..bb..cc..dd.", steps="1111222233334444", label=label, unit_ns=2 * MS)


class FakeLab:
    """Runs nothing: leaves files as an experiment would. `ends` says how a run of this name ends otherwise."""

    def __init__(self, tapes: Path) -> None:
        self.tapes, self.label, self.about = tapes, LABEL, dict(ABOUT)
        self.asked: list[tuple[str, str]] = []
        self.ends = {}

    def __call__(self, experiment, params, kind, folder, on_progress, should_stop):
        folder.mkdir(parents=True, exist_ok=True)
        name = experiment.rpartition(".")[2]
        self.asked.append((kind, name))
        if name in self.ends:
            return self.ends[name](folder)
        leave = {"measured:gauge": self.gauged, "measured:seq2seq": self.trained, "gauge:run": self.launched}
        swept = self.measured_sweep if name.endswith(":measure") else self.simulated_sweep
        leave |= {"seq2seq:train": self.simulated}
        return JobResult("done", leave.get(name, swept)(folder))

    def measured_sweep(self, folder):
        timeline_file.save(drawn(self.label), folder / "one.timeline.json.gz")
        point = {"key": "one", "label": "one way", "step_ns": 8.0 * MS, "losses": [1.0], "trouble": None}
        told = {"points": [point], "timelines": {"one": "one.timeline.json.gz"}, "device": "cuda", "what": "a sweep"}
        return told | self.about

    def simulated_sweep(self, folder):
        return {"tapes": {"one": Path(shutil.copy(SHIPPED, folder)).name}}

    def gauged(self, folder, workloads=(gauge.SOFTMAX, gauge.ADD, gauge.FP32, gauge.FP16)):
        files = {each: f"gauge-{k}.timeline.json.gz" for k, each in enumerate(workloads, 1)}
        for file in files.values():
            timeline_file.save(drawn(self.label), folder / file)
        return {"timelines": files, "notes": {each: ["a note"] for each in files}, "left_out": {}, **self.about}

    def trained(self, folder):
        timeline_file.save(drawn(self.label), folder / measured.TIMELINE_FILE)
        return {"timeline": measured.TIMELINE_FILE, "steps": STEPS, "n_kept": 4, "notes": ["a note"], **self.about}

    def launched(self, folder):
        return {"tapes": {path.stem: Path(shutil.copy(path, folder)).name for path in self.tapes.iterdir()}}

    def simulated(self, folder):
        return {"tape": Path(shutil.copy(SHIPPED, folder)).name}


def few_launches(made: Path, named: Path) -> Path:
    """The tapes of lesson 1, a launch or a few of each workload, in the folder `named` under the workloads' names."""
    told = gauge.run(Progress(results_dir=made), thinned=400)
    for name, file in told["tapes"].items():
        shutil.copy(made / file, named / f"{name}.gz")
    return named
