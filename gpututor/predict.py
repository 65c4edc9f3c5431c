"""Predict a workload's step on a machine: time, and what nvidia-smi would show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpututor.expect import Band
from gpututor.expect.accuracy import band_for, regime_of, util_band
from gpututor.ledger import Ledger, charge
from gpututor.lookup import machine_named
from gpututor.model import constants
from gpututor.model.generation import constants_with
from gpututor.model.uncollected import uncollected
from gpututor.timeline import Timeline

if TYPE_CHECKING:
    from gpututor.cards import Machine
    from gpututor.workloads.setting import Job, Setting, Step, Workload

N_STEPS, N_WARMUP = 2, 2  # the simulated card repeats itself; a second step holds what one step leaves to the next
# Of a step with few entries on the tape many are run, as whoever measured it did: it begins before the one before is
# done, and the first one's head start of the host would count too much.
SHORT_ENTRIES, N_SHORT_STEPS = 300, 20


@dataclass(frozen=True, slots=True)
class Prediction:
    """A workload's steps on one machine: `step_s` is one step's wall time, `per_s` what all cards do in a second."""

    workload: str
    setting: Setting
    machine: Machine
    step_s: float
    n_per_step: float  # on one card, in the workload's unit
    unit: str
    timeline: Timeline
    _ledgers: list[Ledger] = field(default_factory=list, init=False, repr=False, compare=False)  # none or the one

    @property
    def per_s(self) -> float:
        """Units worked through in a second by all cards together."""
        return self.n_per_step * self.setting.n_cards / self.step_s

    @property
    def ledger(self) -> Ledger:
        """Where the first card's time went."""
        if not self._ledgers:
            with uncollected():
                device = 0 if self.setting.n_cards > 1 else None
                self._ledgers.append(charge(self.timeline, self.machine.card, device=device))
        return self._ledgers[0]

    @property
    def regime(self) -> str:
        """Which kind of run it is, in the words of data/bands.toml."""
        return regime_of(self.timeline, self.ledger)

    @property
    def band(self) -> Band:
        """The step's time in nanoseconds with the room that our accuracy on such runs asks for."""
        return band_for(1e9 * self.step_s, "ns", self.regime, self.machine.host.costs_error_share)

    @property
    def util_band(self) -> Band:
        """GPU-Util as a share, with its room."""
        return util_band(self.timeline, self.ledger, self.machine.host.costs_error_share)


def predict(
    workload: Workload, setting: Setting, machine: str | Machine | None = None, torch: str | None = None
) -> Prediction:
    """What `workload` takes on `machine`, by running its steps on the simulated GPU without numerics.

    On several cards rank 0 runs and the others are taken to do what it does, the slowest of them a little later.
    `torch` is the version that ran there, for comparing with old measurements; by default a recent one.

    Raises:
        SettingNotPossible: the workload isn't run in this way.
        torch.OutOfMemoryError: the card's memory is too small for it.
    """
    from gpututor.simgpu.recording import tape_steps
    from gpututor.workloads.training import number_formats

    wanted = machine_named(machine)
    if setting.n_cards > wanted.n_cards:
        wanted = replace(wanted, n_cards=setting.n_cards)
    found: list[Job] = []
    n_steps, n_warmup = (1, 1) if workload.long_step else (N_STEPS, N_WARMUP)
    with number_formats(setting), constants.other(constants_with(torch, setting.layout)):
        if setting.n_cards == 1:

            def step(k: int) -> object:
                if not found:
                    found.append(workload.build(setting, "simgpu"))
                return found[0].step(k)

            tape = tape_steps(step, n_steps=n_steps, warmup=n_warmup, machine=wanted, numerics=False)
            if len(tape.entries) < SHORT_ENTRIES * n_steps:
                n_steps = N_SHORT_STEPS
                found.clear()  # its tensors are of the session that ended
                tape = tape_steps(step, n_steps=n_steps, warmup=n_warmup, machine=wanted, numerics=False)
            with uncollected():
                timeline = tape.price(wanted)
        else:
            from gpututor.simgpu.cards.distributed import tape_ranks

            def make(rank: int) -> Step:
                found.append(workload.build(setting, "simgpu"))
                return found[0].step

            tapes = tape_ranks(
                make, wanted, setting.n_cards, n_steps=n_steps, warmup=n_warmup, numerics=False, in_step=True
            )
            with uncollected():
                timeline = tapes.price(wanted, as_in_training=True)
    n_per_step = found[0].n_per_step
    step_s = timeline.duration_ns / n_steps / 1e9
    return Prediction(workload.name, setting, wanted, step_s, n_per_step, workload.unit, timeline)
