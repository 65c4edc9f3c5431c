"""What a run of lesson 17 found: four jobs on every machine, what a fault costs each of them, what a dollar buys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpututor.cards import Machine, machines
from gpututor.doctor.faults import Fault, planted
from gpututor.doctor.planted import Patient
from gpututor.doctor.words import counted
from gpututor.exercises.ex17 import case_cheapest
from gpututor.exercises.form import Case
from gpututor.experiments.machine_itself import JOBS, N_PHOTOS, PHOTOS, POLICY, SENTENCES, TEXTS
from gpututor.jobs.tutorial import TUTORIAL_STEPS
from gpututor.page.kept import Kept
from gpututor.page.lessons.offers import Offer
from gpututor.page.lessons.splits import Steps
from gpututor.replay import (
    with_faster_arithmetic,
    with_faster_memory,
    with_slower_copies,
)
from gpututor.text import duration
from gpututor.timeline import Label, Origin

SEED = "lesson 17"  # of the machines that the page shows
TABLE = (PHOTOS, SENTENCES, POLICY)
NEIGHBOURS_SHARE = 0.5  # of the card's time: kernels of two processes take turns, of equal length in our model
NOTHING = 1.03  # times as long: what one would not notice
SAMPLES: Mapping[str, tuple[int, str]] = {
    PHOTOS: (1_281_167, "an epoch of ImageNet"),  # pictures of the training set, ILSVRC 2012
    TEXTS: (97_657, "a hundred million tokens"),  # texts of 1,024
    SENTENCES: (TUTORIAL_STEPS, "the tutorial's 75,000 sentences"),
    POLICY: (1_000_000, "a million states"),
}
"""What of each job is priced: how many samples, and what they are."""
NAMES = {
    PHOTOS: "ResNet-50, 64 photographs",
    TEXTS: "GPT-2 in fp16",
    SENTENCES: "the translator of lesson 2",
    POLICY: "a policy of two layers",
}
Ratio = float | None


def at_clock(machine: Machine, share: float) -> Machine:
    """The machine with its card at this share of its clock: arithmetic takes longer, memory doesn't."""
    return with_faster_arithmetic(machine, share)


def _lanes_lost(patient: Patient) -> float:
    """How many times as long a copy takes over the link as it is as over the one that card and slot allow.

    A generation has twice the rate of the one before.
    """
    gpu = patient.gpu
    assert None not in (gpu.pcie_gen, gpu.pcie_gen_max, gpu.pcie_width, gpu.pcie_width_max)
    generations = (gpu.pcie_gen_max or 0) - (gpu.pcie_gen or 0)
    return float(2**generations * (gpu.pcie_width_max or 1) / (gpu.pcie_width or 1))


def with_fault(machine: Machine, fault: Fault) -> Machine:
    """The machine as this fault, planted as the page shows it, leaves its card and link; others change neither."""
    patient = planted(fault, SEED)
    gpu = patient.gpu
    if fault in (Fault.HEAT, Fault.POWER):
        return at_clock(machine, (gpu.sm_clock_hz or 1) / (gpu.sm_clock_max_hz or 1))
    if fault is Fault.NEIGHBOUR:
        return with_faster_memory(with_faster_arithmetic(machine, NEIGHBOURS_SHARE), NEIGHBOURS_SHARE)
    if fault is Fault.LINK:
        return with_slower_copies(machine, _lanes_lost(patient))
    return machine


@dataclass(frozen=True, slots=True)
class Jobs:
    """A run's jobs, priced where one asks; `on` is the machine that the reader chose. Without a run there are none."""

    on: Machine
    tapes: Mapping[str, Path]
    told: Mapping[str, Mapping[str, Any]]
    here_ns: Mapping[str, float]
    here: Mapping[str, Any]
    decode_ns: float | None
    said: str

    def has(self, *keys: str) -> bool:
        """Whether all of these jobs were run."""
        return all(key in self.tapes for key in keys)

    @property
    def whole(self) -> bool:
        """Whether all was run, on the card and on the processor."""
        return self.has(*JOBS) and set(TABLE) <= set(self.here_ns) and self.decode_ns is not None

    @property
    def known(self) -> list[str]:
        """Keys of the jobs that were run."""
        return [key for key in JOBS if key in self.tapes]

    def step_ns(self, key: str, machine: Machine | None = None) -> float:
        """A step on one card of a machine."""
        return Steps(self.tapes, machine or self.on)[key].step_ns

    def sample_ns(self, key: str) -> float:
        """A sample on the chosen machine."""
        return self.step_ns(key) / int(self.told[key]["n_samples"])

    @property
    def times(self) -> Ratio:
        """How many times as long a photograph takes on this processor as on the chosen machine's card."""
        known = self.has(PHOTOS) and PHOTOS in self.here_ns
        return self.here_ns[PHOTOS] / self.sample_ns(PHOTOS) if known else None

    def here_times(self, key: str) -> Ratio:
        """The same for any job."""
        return self.here_ns[key] / self.sample_ns(key) if self.has(key) and key in self.here_ns else None

    def label(self, what: str, machine: Machine | None = None) -> Label:
        """What a figure must say that shows several jobs."""
        of = machine or self.on
        return Label(Origin.SIMULATED, of.card.name, of.name, what, n_sms=of.card.n_sms)

    @property
    def times_said(self) -> str:
        """What a photograph takes on the chosen card and on this processor."""
        return (
            f"On the {self.on.card.name} a photograph takes {duration(self.sample_ns(PHOTOS))}, on this computer's "
            f"processor {duration(self.here_ns[PHOTOS])}: {self.times or 0:,.0f} times as long."
        )

    @property
    def right_place_said(self) -> str:
        """Which job the processor does as quickly as the card, if any."""
        times = self.here_times(POLICY)
        if times is None:
            return ""
        if times < 1 / NOTHING:
            return (
                f"And for the policy it is none: a state takes {duration(self.here_ns[POLICY])} here and "
                f"{duration(self.sample_ns(POLICY))} on the card. It is so tiny that launches take longer than its "
                "arithmetic; the right use of a GPU for it is none."
            )
        return (
            f"Even the tiny policy takes {times:.1f} times as long on this processor; on a quicker one, or a slower "
            "host, it is the card that loses."
        )

    @property
    def faults_said(self) -> str:
        """Where heat is felt and where it isn't."""
        if not self.whole:
            return ""
        hot, calm = (self.fault_times(Fault.HEAT, key) or 1 for key in (PHOTOS, SENTENCES))
        told = f"Heat makes photographs {hot:.1f} times as long"
        told += (
            ", and the translator doesn't feel it: its card waits for launches anyway."
            if calm < NOTHING
            else f", and the translator {calm:.1f} times."
        )
        enough = math.ceil(self.loader_ns(1) / self.step_ns(PHOTOS))
        return f"{told} To feed photographs to this {self.on.card.name} takes {counted(enough, 'CPU')} like this one's."

    # --- what a fault costs ------------------------------------------------------------------------------------------

    def loader_ns(self, n_cpus: float) -> float:
        """What so many CPUs need for a batch of photographs, as lesson 6's law has it."""
        return N_PHOTOS * (self.decode_ns or 0) / n_cpus

    def fed_ns(self, key: str, machine: Machine, n_cpus: float | None = None) -> float:
        """A step whose batches come from a loader: the longer of both. Only photographs have one."""
        step = self.step_ns(key, machine)
        return step if key != PHOTOS else max(step, self.loader_ns(n_cpus or self.on.host.n_cpus))

    def fault_times(self, fault: Fault, key: str) -> Ratio:
        """How many times as long the job takes on the chosen machine with a fault; None where that wasn't measured."""
        usual, patient = self.fed_ns(key, self.on), planted(fault, SEED)
        if fault in (Fault.CPU_WHEEL, Fault.WRONG_DEVICE):
            if key not in self.here_ns:
                return None
            return self.here_ns[key] * int(self.told[key]["n_samples"]) / usual
        if fault is Fault.FEW_CPUS:
            return self.fed_ns(key, self.on, patient.busy_cpus) / usual
        if fault is Fault.SHARED_MEMORY:
            return (self.step_ns(key) + (self.loader_ns(1) if key == PHOTOS else 0)) / usual
        return self.fed_ns(key, with_fault(self.on, fault)) / usual

    # --- what a machine costs ----------------------------------------------------------------------------------------

    def offer(self, key: str, machine: Machine) -> Offer:
        """The job on one card of a machine."""
        told, card = self.told[key], machine.card
        n_samples, of_step, needs = SAMPLES[key][0], int(told["n_samples"]), told["memory_bytes"]
        if needs is not None and needs > card.memory_bytes:
            why = f"needs {needs / 2**30:.1f} GiB, the {card.name} has {card.memory_bytes / 2**30:.0f}"
            return Offer(machine, self.tapes[key], why, n_samples, of_step)
        return Offer(machine, self.tapes[key], "", n_samples, of_step)

    def offers(self, key: str, *, priced: bool = True) -> list[Offer]:
        """The job on every machine with a price, the cheapest for it first; or on all others, the quickest first."""
        found = [self.offer(key, each) for each in machines().values() if (each.usd_per_hour is not None) == priced]
        return sorted(found, key=lambda one: (bool(one.trouble), one.usd or 0, one.whole_ns))

    def rented(self, key: str) -> list[Offer]:
        """Those that have a price and the memory, the cheapest for the job first."""
        return [each for each in self.offers(key) if not each.trouble]

    def cheapest_case(self, key: str) -> Case:
        """The case of 17.2: the machines with a price, a card each, and the job that is chosen."""
        rows = [
            [each.machine.name, each.machine.usd_per_card_hour, 1e9 * each.n_samples / each.whole_ns, each.gib]
            for each in self.rented(key)
        ]
        needs = self.told[key]["memory_bytes"] or 0
        return case_cheapest(rows, SAMPLES[key][0], needs / 2**30)


def jobs_of(kept: Kept, on: Machine) -> Jobs:
    """The run's jobs, with this machine chosen."""
    data = kept.data
    told = {each["key"]: each for each in data.get("points", ()) if each["key"] in kept.tapes}
    here = data.get("here") or {}
    return Jobs(on, kept.tapes, told, here.get("ns") or {}, here, data.get("decode_ns"), data.get("said") or "")
