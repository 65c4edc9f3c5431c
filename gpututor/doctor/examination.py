"""Runs every check as soon as it can answer: first those that only read files, then the driver's, then torch's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Protocol

from gpututor.doctor.child import Child
from gpututor.doctor.facts import Driver, Facts, Torch
from gpututor.doctor.finding import Check, Finding, Probe, State
from gpututor.doctor.registry import CHECKS
from gpututor.doctor.torch_probe import LOOK, RUN
from gpututor.doctor.words import binary, several

DRIVER_LIMIT_S = 20.0
"""Our choice: a driver without persistence needs some seconds to start; after twenty it hangs."""
TORCH_LIMIT_S = 120.0
"""Our choice: compiling PTX takes 2 to 7 min (pytorch/pytorch#537, #12283); two minutes are enough to say so."""

ROOM_FOR_A_CONTEXT_BYTES = 2 * 2**30
"""Our choice: a CUDA context with torch's kernels takes about 0.5 GiB, and the cache of a training grows by steps."""


class Asked(Protocol):
    """A running probe."""

    def go(self, how: str) -> None:
        """Allow what the probe waits for."""

    def answer(self, limit_s: float) -> tuple[dict[str, object], str | None]:
        """What it told within the time, and why it ended early."""

    def stop(self) -> None:
        """End it."""


@dataclass(slots=True)
class Examination:
    """One look at the machine. `findings()` runs it; `facts` and `left_out` are whole when that has ended.

    `start` starts a probe, a child process without it; `checks` are all that there are without it.
    """

    facts: Facts
    start: Callable[[Probe], Asked] | None = None
    on_wait: Callable[[str], None] = lambda _: None
    checks: Sequence[Check] | None = None
    left_out: list[str] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)

    def findings(self) -> Iterator[Finding]:
        """Findings as they come. Both probes start at once, and torch touches the card when the driver has answered."""
        with ExitStack() as stack:
            asked = {probe: (self.start or Child)(probe) for probe in Probe}
            for one in asked.values():
                stack.callback(one.stop)
            yield from self._answered(set())
            self.on_wait("asking the driver")
            self.facts = replace(self.facts, driver=self._driver(asked[Probe.DRIVER]))
            yield from self._answered({Probe.DRIVER})
            self.on_wait("loading torch, and trying a kernel where there is a GPU")
            untried = _better_not(self.facts.driver)
            asked[Probe.TORCH].go(LOOK if untried else RUN)
            limit_s = (
                DRIVER_LIMIT_S if self.facts.driver.died else TORCH_LIMIT_S
            )  # torch would hang where the driver does
            self.facts = replace(self.facts, torch=replace(self._torch(asked[Probe.TORCH], limit_s), untried=untried))
            yield from self._answered(set(Probe))

    def _answered(self, known: set[Probe]) -> Iterator[Finding]:
        """Findings of the checks that wait no longer, now that these probes have answered."""
        ready = [
            check
            for check in (CHECKS if self.checks is None else self.checks)
            if check.needs <= known and check.id not in self._done
        ]
        for check in ready:
            self._done.add(check.id)
            finding = check(self.facts)
            if finding is None:
                self.left_out.append(check.id)
            else:
                yield finding

    @staticmethod
    def _driver(asked: Asked) -> Driver:
        fields, why = asked.answer(DRIVER_LIMIT_S)
        return Driver.from_fields(fields if why is None else {**fields, "error": why, "died": True})

    @staticmethod
    def _torch(asked: Asked, limit_s: float) -> Torch:
        fields, why = asked.answer(limit_s)
        return Torch.from_fields({**fields, "unfinished": why})


def _better_not(driver: Driver) -> str | None:
    """Why no kernel should be tried: the memory that its context takes may be what a training needs next."""
    for gpu in driver.gpus:
        if gpu.memory_bytes is not None and gpu.memory_used_bytes is not None:
            free_bytes = gpu.memory_bytes - gpu.memory_used_bytes
            if free_bytes < ROOM_FOR_A_CONTEXT_BYTES:
                return f"{gpu.called} has only {binary(free_bytes)} free, which whoever uses it may need"
    return None


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings as the registry lists their checks, whichever came first."""
    place = {check.id: k for k, check in enumerate(CHECKS)}
    return sorted(findings, key=lambda finding: place.get(finding.id, len(place)))


def counts(findings: Iterable[Finding]) -> dict[State, int]:
    """How many findings there are of each state."""
    findings = list(findings)
    return {state: sum(finding.state is state for finding in findings) for state in State}


def headline(facts: Facts, findings: Iterable[Finding]) -> str:
    """The answer to the first question: is a GPU used here, and what is to be done?"""
    findings = list(findings)
    n = counts(findings)
    parts = [f"{k} {words}" for k, words in ((n[State.FAIL], "to repair"), (n[State.WARN], "to look at")) if k]
    todo = f"{', '.join(parts)}." if parts else "nothing to do."
    if facts.torch.version is None:
        return f"torch can't be loaded, so nothing runs, on a GPU or a simulated one: {todo}"
    if facts.torch.available and facts.torch.gpus:
        return f"torch uses {several(gpu.name for gpu in facts.torch.gpus)}: {todo}"
    if facts.torch.other:
        return f"torch uses this computer's {facts.torch.other}; NVIDIA's readings don't exist here: {todo}"
    if any(finding.id == "gpu.present" and finding.state is State.PASS for finding in findings):
        return f"A GPU is in this machine, and torch does not use it: {todo}"
    return f"No GPU here: the simulated one works; these are the CPU findings: {todo}"
