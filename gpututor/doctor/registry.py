"""The extension point: every check, in the order in which they run and are shown."""

from __future__ import annotations

from gpututor.doctor import (
    card_checks,
    card_use_checks,
    container_checks,
    data_checks,
    driver_checks,
    machine_checks,
    switches,
    torch_checks,
    visible_checks,
)
from gpututor.doctor.finding import Check

CHECKS: tuple[Check, ...] = (
    *driver_checks.CHECKS,
    *torch_checks.CHECKS,
    *visible_checks.CHECKS,
    *card_checks.CHECKS,
    *card_use_checks.CHECKS,
    *container_checks.CHECKS,
    *machine_checks.CHECKS,
    *data_checks.CHECKS,
    *switches.CHECKS,
)
