"""The ledger itself: nanoseconds by account, and the gauges that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpututor.cards import Card
from gpututor.errors import LedgerError
from gpututor.ledger.accounts import BUSY, IDLE, UNFILLED, Account
from gpututor.ledger.piece import Piece
from gpututor.timeline import NS_PER_S, Label


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where every nanosecond of one GPU's window went; the accounts sum to `window_ns` exactly.

    `gpu_util_ns` is the time with at least one kernel, collectives included. `reasons` says why a gauge is
    None, by the gauge's name. `useful_flop` counts the parts of kernels inside the window, None where not known.
    `device` is the number of the GPU, None where the timeline has only one. `pieces` are the stretches without a
    computing kernel, where `charge` made the ledger.

    Raises:
        LedgerError: an account is negative, or they don't add up.
    """

    window_ns: int
    charged_ns: Mapping[Account, int]
    label: Label
    gpu_util_ns: int
    n_kernels: int
    n_steps: int
    n_samples: int | None = None
    useful_flop: float | None = None
    card: Card | None = None
    device: int | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[Piece, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "charged_ns", {account: self.charged_ns.get(account, 0) for account in Account})
        total = sum(self.charged_ns.values())
        negative = [account.value for account, ns in self.charged_ns.items() if ns < 0]
        if negative or total != self.window_ns:
            raise LedgerError(
                f"the accounts add up to {total:,} ns of a window of {self.window_ns:,} ns"
                + (f", with less than nothing in {', '.join(negative)}" if negative else "")
                + "; every nanosecond belongs to one account"
            )

    def __str__(self) -> str:
        from gpututor.ledger.waterfall import as_text

        return as_text(self)

    def share(self, *accounts: Account) -> float:
        """Share of the window charged to these accounts together, in 0..1.

        >>> from gpututor.timeline import Origin
        >>> Ledger(8, {Account.USEFUL: 2, Account.PAUSE: 6}, Label(Origin.SIMULATED), 2, 1, 0).share(Account.USEFUL)
        0.25
        """
        return sum(self.charged_ns[account] for account in accounts) / self.window_ns

    @property
    def busy_ns(self) -> int:
        """Nanoseconds with at least one computing kernel, memset or copy within the GPU's memory."""
        return sum(self.charged_ns[account] for account in BUSY)

    @property
    def idle_ns(self) -> int:
        """Nanoseconds without; communication that nothing hides is among them."""
        return sum(self.charged_ns[account] for account in IDLE)

    @property
    def busy_share(self) -> float:
        """`busy_ns` over the window."""
        return self.busy_ns / self.window_ns

    @property
    def gpu_util_share(self) -> float:
        """What nvidia-smi calls GPU-Util: share of time with at least one kernel, even one that only waits for a peer.

        Copies don't count. Source: NVML, `nvmlUtilization_t.gpu`.
        """
        return self.gpu_util_ns / self.window_ns

    @property
    def sm_fill_share(self) -> float | None:
        """Share of the card's SMs that had a block, averaged over the whole window; None with a reason."""
        if "sm_fill" in self.reasons:
            return None
        return self.busy_share - self.share(*UNFILLED)

    @property
    def mfu(self) -> float | None:
        """Useful FLOP over what the card's best format could do in the window; None with a reason."""
        return None if "mfu" in self.reasons else self.share(Account.USEFUL)

    @property
    def mfu_at_least(self) -> float | None:
        """The same where some kernels don't say their FLOP: what the others did of it. None without any, or a peak."""
        return self.share(Account.USEFUL) or self.mfu

    @property
    def samples_per_s(self) -> float | None:
        """Samples of the window's steps per second of wall time; None with a reason."""
        return None if self.n_samples is None else self.n_samples * NS_PER_S / self.window_ns

    @property
    def step_ns(self) -> float | None:
        """Mean wall time of a step in nanoseconds, or None without steps."""
        return self.window_ns / self.n_steps if self.n_steps else None

    def epoch_s(self, n_samples: int) -> float | None:
        """Seconds that an epoch of `n_samples` takes at this speed, or None where the speed isn't known."""
        return n_samples / self.samples_per_s if self.samples_per_s else None

    def usd_per_epoch(self, n_samples: int, usd_per_hour: float | None) -> float | None:
        """US dollars for an epoch of `n_samples` at this speed, or None where speed or price isn't known.

        >>> from gpututor.timeline import Origin
        >>> one = Ledger(10**9, {Account.USEFUL: 10**9}, Label(Origin.SIMULATED), 10**9, 1, 1, n_samples=100)
        >>> one.usd_per_epoch(360_000, 3.06)
        3.06
        """
        seconds = self.epoch_s(n_samples)
        return None if seconds is None or usd_per_hour is None else seconds * usd_per_hour / 3600

    def usd_spent_on(self, account: Account, usd: float) -> float:
        """The part of `usd`, paid for the whole window, that went to this account."""
        return usd * self.share(account)


def without(ledger: Ledger, *accounts: Account) -> Ledger:
    """The ledger as if these accounts cost nothing and all else stayed: the best that a change there can bring.

    A bound, not a forecast. A wait that you remove may show up on another line, for instance
    when a sync is deleted and the next copy waits instead.

    Raises:
        LedgerError: nothing would be left.
    """
    gone_ns = sum(ledger.charged_ns[account] for account in set(accounts))
    window_ns = ledger.window_ns - gone_ns
    if window_ns <= 0:
        names = ", ".join(account.value for account in accounts)
        raise LedgerError(f"the whole window is {names}; without it nothing is left to compare with")
    kept = {account: 0 if account in accounts else ns for account, ns in ledger.charged_ns.items()}
    kernels_gone_ns = sum(ledger.charged_ns[account] for account in set(accounts) if account in BUSY)
    if Account.EXPOSED_COMMUNICATION in accounts:
        kernels_gone_ns += max(0, ledger.gpu_util_ns - ledger.busy_ns)
    gpu_util_ns = max(0, min(window_ns, ledger.gpu_util_ns - kernels_gone_ns))
    return replace(ledger, window_ns=window_ns, charged_ns=kept, gpu_util_ns=gpu_util_ns)
