"""Steps on a real GPU of this machine → `Recording`; any loop, split into parts, by calling this module.

`gpututor.measure` is this module and can be called: `with gpututor.measure() as run: …`; see `loop.measure`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from gpututor.measure.loop import Run
    from gpututor.measure.measurement import Measurement


def load(path: str | Path) -> Measurement:
    """The measurement that `Measurement.save` wrote.

    Raises:
        MeasurementDamaged: the file can't be read or is no saved measurement.
    """
    from gpututor.measure.measurement_file import load as _load

    return _load(path)


class _Callable(ModuleType):
    """A module that can be called, so that one name is the package and its main function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Run:
        """A loop to be measured; the arguments are those of `gpututor.measure.loop.measure`."""
        from gpututor.measure.loop import measure

        return measure(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
