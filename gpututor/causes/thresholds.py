"""When an account is worth naming. Our choices, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Shares of the window, unless the name says otherwise."""

    idle_share: float = 0.05
    """Emptying an account of 5 % makes a step 1.05 times faster: less is lost in the spread of repeated runs."""

    unfilled_share: float = 0.10
    """Every kernel has a last wave, so a few per cent are always there."""

    memory_share: float = 0.25
    """Every network has memory-bound kernels (norms, activations, the optimizer); a quarter is worth a change."""

    format_share: float = 0.10
    """Changing the number format costs care for the loss; below a tenth it doesn't pay."""

    repeated_share: float = 0.10
    """Checkpointing and padding buy memory and simplicity; a tenth is a usual price."""

    unknown_share: float = 0.25
    """With a quarter of the time unexplained, the named causes may not be the largest one."""

    unknown_of_idle_share: float = 0.5
    """With half of the idle time unexplained neither, as soon as idle time is worth naming (`idle_share`)."""

    one_wait_share: float = 0.25
    """A single wait that is a quarter of its account isn't the many small ones that the account is usually about."""

    overrun_share: float = 0.05
    """Work still queued when the clock stops; as much as the smallest cause we name."""

    above_peak: float = 1.02
    """MFU beyond this can't be: a clock or card entry is off. Two per cent for rounding and boost above the sheet."""

    least_steps: int = 3
    """The first step pays for start-up, the second may still; the third is the first to compare with. Measured only."""

    least_kernels: int = 10
    """The smallest step of training has forward, backward and update of a layer: some ten kernels. Recorded only."""

    cpu_flop_per_s: float = 74e9
    """One core of a Xeon E5-2686 v4 (Broadwell) at 2.3 GHz: 2 FMA units of 8 fp32 numbers, 2 FLOP each, per cycle."""

    cpu_step_share: float = 0.25
    """Named when one CPU core at its peak would take under a quarter of the step; half its peak is realistic."""
