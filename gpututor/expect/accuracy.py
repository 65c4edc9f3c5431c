"""How far a prediction may be off: by what kind of run it is, from the errors that our accuracy report found.

`data/bands.toml` holds, for each regime, the error that four of five published runs keep within. `gpututor bench
accuracy --write-bands` writes it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from gpututor.expect.band import Band, around
from gpututor.ledger import IDLE, Account, Ledger
from gpututor.paths import data_dir
from gpututor.tables import Entry, named, read_table
from gpututor.text import percent
from gpututor.timeline import Activity, Timeline

SEVERAL_CARDS, LAUNCH_BOUND, RECURRENT = "several_cards", "launch_bound", "recurrent"
PICTURES, PRODUCTS, BUSY, ALL = "pictures", "matrix_products", "busy", "all"

# Name of a regime, and what its runs are to a reader.
REGIMES: Mapping[str, str] = MappingProxyType(
    {
        SEVERAL_CARDS: "runs on several cards",
        LAUNCH_BOUND: "launch-bound runs",
        RECURRENT: "recurrent networks",
        PICTURES: "convolutional networks",
        PRODUCTS: "transformers and other matrix products",
        BUSY: "runs that keep one card busy",
        ALL: "runs of all kinds",
    }
)

LAUNCH_SHARE = 0.20
"""Our choice: with a fifth of the step lost to launches, a host twice as slow moves the step more than any kernel."""

RECURRENT_SHARE = 0.10
"""Our choice: translators with cuDNN's recurrent layers spend 15 to 17 % of the kernels' time there, others nothing."""

FLOOR_SHARE = 0.05
"""No band is narrower, in time or in points: one job on two versions of torch or of a driver differs by as much."""

COVERED = 0.8
"""Our choice: the share of runs like those of the report that a band is made to hold."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What the report found for one regime.

    `n_points` published runs; `error_share` so that predicted over measured is within 1 + `error_share` either way for
    four of five of them; `bias_share` is the middle one of predicted over measured time, less 1.
    """

    regime: str
    n_points: int
    error_share: float
    bias_share: float

    @property
    def source(self) -> str:
        """In a reader's words: how many runs of which kind."""
        return f"our accuracy on {self.n_points} published {REGIMES.get(self.regime, self.regime)}"


@dataclass(frozen=True, slots=True)
class Bands:
    """Accuracy by regime, and of nvidia-smi's utilization in points: 0.05 is five percentage points."""

    by_regime: Mapping[str, Accuracy]
    n_util_points: int
    util_points_share: float

    def of(self, regime: str) -> Accuracy:
        """That of this regime; of all runs where the report has too few of it, or has none of this name."""
        return self.by_regime.get(regime) or self.by_regime[ALL]


@cache
def bands() -> Bands:
    """Our frozen report, data/bands.toml.

    Raises:
        DataFileError: the table is damaged.
    """
    table = read_table(data_dir() / "bands.toml")
    found = {name: _accuracy(name, entry) for name, entry in named(table, "band")}
    if ALL not in found:
        raise table.refuse("band", f'has no "{ALL}", on which every other falls back')
    util = table.inner("utilization")
    return Bands(MappingProxyType(found), util.count("n_points"), util.share("points_share"))


def _accuracy(name: str, entry: Entry) -> Accuracy:
    bias = entry.fields.get("bias_share")
    if not isinstance(bias, int | float) or isinstance(bias, bool) or not math.isfinite(bias):
        raise entry.refuse("bias_share", f"holds {bias!r}, where a number is needed")
    return Accuracy(name, entry.count("n_points"), entry.number("error_share", zero=True), float(bias))


def regime_of(timeline: Timeline, ledger: Ledger) -> str:
    """Which kind of run this is, by what its timeline and ledger show; the first rule that holds.

    Several cards: they exchange data. Launch-bound: launch overhead is the largest idle account, and more than a fifth
    of the time. Recurrent: a tenth of the kernels' time is in recurrent layers. Convolutions, or matrix products with
    attention: whichever takes more of the kernels' time. Without any of these the run counts among all.
    """
    if any(timeline.on(Activity.COLLECTIVE, Activity.TRANSFER)):
        return SEVERAL_CARDS
    launching = ledger.charged_ns[Account.LAUNCH_OVERHEAD]
    if launching == max(ledger.charged_ns[account] for account in IDLE) and launching > LAUNCH_SHARE * ledger.window_ns:
        return LAUNCH_BOUND
    return _by_kernels(timeline)


def _by_kernels(timeline: Timeline) -> str:
    kinds = Counter[str]()
    for span in timeline.on(Activity.KERNEL):
        kinds[span.work.kind if span.work else ""] += span.duration_ns
    if kinds["rnn step"] and kinds["rnn step"] >= RECURRENT_SHARE * kinds.total():
        return RECURRENT
    convolutions, products = kinds["convolution"], kinds["gemm"] + kinds["attention"]
    if not convolutions and not products:
        return ALL
    return PICTURES if convolutions > products else PRODUCTS


def together(*error_shares: float) -> float:
    """The error that independent errors make together: their logarithms add up in squares.

    >>> round(together(0.1, 0.0), 3), round(together(0.1, 0.1), 3)
    (0.1, 0.144)
    """
    return math.exp(math.hypot(*(math.log1p(error) for error in error_shares))) - 1


def error_of(regime: str, host_error_share: float | None = None) -> tuple[float, str]:
    """How far off a step of this regime may be, and who says so.

    `host_error_share` is how far the host's own costs may be off where somebody measured them, as `gpututor calibrate`
    does. A launch-bound step takes as long as its host does, so there the report's error, which holds that of hosts
    which nobody measured, gives way to that of runs whose host doesn't matter, together with the host's own.
    """
    accuracy = bands().of(BUSY if regime == LAUNCH_BOUND and host_error_share is not None else regime)
    error_share = max(FLOOR_SHARE, accuracy.error_share)
    if regime != LAUNCH_BOUND or host_error_share is None:
        return error_share, accuracy.source
    words = f"{accuracy.source}, and {percent(host_error_share)} for the calibrated host"
    return together(error_share, host_error_share), words


def band_for(expected: float, unit: str, regime: str, host_error_share: float | None = None) -> Band:
    """The band of a predicted time or rate in this regime.

    Raises:
        DataFileError: data/bands.toml is damaged.
    """
    error_share, source = error_of(regime, host_error_share)
    return around(expected, error_share, unit, source)


def util_band_for(share: float, regime: str, host_error_share: float | None = None) -> Band:
    """The band of a predicted utilization, a share.

    As far off in points as the report's utilizations are, and five at least. In a launch-bound run the kernels stay
    what they are and the step around them may be longer or shorter, so there also as far as the step's band allows.
    """
    points = max(FLOOR_SHARE, bands().util_points_share)
    low, high = share - points, share + points
    source = f"our accuracy on {bands().n_util_points} published utilizations"
    if regime == LAUNCH_BOUND:
        error_share, source = error_of(regime, host_error_share)
        low, high = min(low, share / (1 + error_share)), max(high, share * (1 + error_share))
    return Band(max(0.0, low), share, min(1.0, high), "share", source)


def step_band(timeline: Timeline, ledger: Ledger, host_error_share: float | None = None) -> Band:
    """The band of a step's predicted time in nanoseconds; of the whole window where there are no steps."""
    wall_ns = ledger.window_ns if ledger.step_ns is None else ledger.step_ns
    return band_for(wall_ns, "ns", regime_of(timeline, ledger), host_error_share)


def util_band(timeline: Timeline, ledger: Ledger, host_error_share: float | None = None) -> Band:
    """The band of the predicted GPU-Util."""
    return util_band_for(ledger.gpu_util_share, regime_of(timeline, ledger), host_error_share)


def in_words(step: Band, util: Band) -> str:
    """Both bands of a prediction in one sentence, without a full stop."""
    ends = (f"{band.in_words(band.low)} to {band.in_words(band.high)}" for band in (step, util))
    sources = " and ".join(dict.fromkeys((step.source, util.source)))
    return "Expect {} a step on a real one, and {} in nvidia-smi, by {}".format(*ends, sources)


def from_points(errors: Mapping[str, list[float]]) -> dict[str, Accuracy]:
    """The accuracy of each regime from logarithms of predicted over measured time; too few points give none.

    With n points the error is the k-th smallest, k being 0.8 (n + 1) rounded up, so that another run of the same
    kind falls within it at least four times of five. That takes four points. Source: conformal prediction.

    >>> from_points({"pictures": [0.0, 0.1, -0.2, 0.05], "recurrent": [0.1]})["pictures"].n_points
    4
    """
    return {name: found for name, logs in errors.items() if (found := _of_points(name, logs)) is not None}


def _of_points(name: str, logs: list[float]) -> Accuracy | None:
    error_share = covering([abs(log) for log in logs])
    if error_share is None:
        return None
    middle = sorted(logs)[len(logs) // 2]
    return Accuracy(name, len(logs), math.expm1(error_share), math.expm1(middle))


def covering(sizes: list[float]) -> float | None:
    """The size that another one of the same kind stays within, at least four times of five; None with too few.

    >>> covering([0.3, 0.1, 0.2, 0.4]), covering([0.1, 0.2, 0.3])
    (0.4, None)
    """
    k = math.ceil(COVERED * (len(sizes) + 1) - 1e-9)
    return sorted(sizes)[k - 1] if k <= len(sizes) else None
