"""A GPU, a host and the machine that joins them, as plain figures; cards.py reads them from the tables in data/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FORMATS = ("fp64", "fp32", "tf32", "fp16", "bf16", "int8")
TRAINING_FORMATS = ("fp32", "fp16", "bf16", "tf32")  # a tie goes to the first


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU as software sees it; rates are dense, a multiply-add counts as two.

    `peak_flop_per_s` holds the tensor-core rate with fp32 accumulation for fp16, bf16 and tf32 where the card
    has tensor cores, and lacks formats that the card lacks. `sustained` is the share of that peak which large
    matrix products reach in practice, `bandwidth_share` the same for memory traffic. `nvlink_bytes_per_s` counts
    both directions together. `sources` says where each figure comes from and what confirms it.
    """

    name: str
    architecture: str
    compute_capability: str
    n_sms: int
    fp32_cores_per_sm: int
    boost_clock_hz: float
    peak_flop_per_s: Mapping[str, float]
    memory_bytes: int
    memory_type: str
    bandwidth_bytes_per_s: float
    l2_bytes: int
    smem_bytes_per_sm: int
    max_warps_per_sm: int
    max_blocks_per_sm: int | None
    tdp_w: float
    pcie_gen: int
    pcie_lanes: int
    nvlink_bytes_per_s: float | None
    sustained: Mapping[str, float]
    bandwidth_share: float
    sources: Mapping[str, str]
    note: str = ""

    def peak(self, number_format: str) -> float | None:
        """Peak rate in this number format, in FLOP/s; None where the card lacks the format."""
        return self.peak_flop_per_s.get(number_format)

    def top_format(self) -> tuple[str, float]:
        """The format with the highest dense rate among those that training uses, and that rate in FLOP/s.

        >>> from gpututor.cards import card
        >>> card("V100-SXM2-16GB").top_format()
        ('fp16', 125000000000000.0)
        """
        return max(
            ((f, self.peak_flop_per_s[f]) for f in TRAINING_FORMATS if f in self.peak_flop_per_s),
            key=lambda pair: pair[1],
        )

    @property
    def top_peak_flop_per_s(self) -> float:
        """The rate of `top_format`, in FLOP/s."""
        return self.top_format()[1]


@dataclass(frozen=True, slots=True)
class Host:
    """The computer around a card. `costs` are microseconds by name of the cost; `n_cpus` counts hardware threads.

    `costs_error_share` is how far they may be off where `gpututor calibrate` measured them, and None where nobody did.
    """

    name: str
    cpu: str
    n_cpus: int
    costs: Mapping[str, float]
    pinned_bytes_per_s: float
    pageable_bytes_per_s: float
    sync_us: float
    sources: Mapping[str, str]
    note: str = ""
    costs_error_share: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """A host with its cards, as one rents or owns it. `usd_per_hour` is None where nobody quotes a price.

    `joined_by` names the link between its cards in data/links.toml, where it isn't the usual one of such a machine.
    """

    name: str
    provider: str
    card: Card
    n_cards: int
    host: Host
    usd_per_hour: float | None
    price_basis: str
    sources: Mapping[str, str]
    note: str = ""
    joined_by: str | None = None

    @property
    def usd_per_card_hour(self) -> float | None:
        """Price of one card for one hour, in US dollars, or None where nobody quotes a price."""
        return None if self.usd_per_hour is None else self.usd_per_hour / self.n_cards
