"""Numbers as a reader sees them. Rounding never turns a small share into 0 % nor 99.96 % into 100 %."""

from __future__ import annotations

NBSP = "\u00a0"


def percent(share: float | None) -> str:
    """A share in 0..1 as text.

    >>> percent(0.25), percent(0.0007), percent(0.9996), percent(1.0), percent(None)
    ('25\\xa0%', '0.07\\xa0%', '> 99.9\\xa0%', '100\\xa0%', 'not known')
    """
    if share is None:
        return "not known"
    p = 100 * share
    if p in (0, 100):
        return f"{p:.0f}{NBSP}%"
    if 0 < p < 0.01:
        return f"< 0.01{NBSP}%"
    if 0 < p < 1:
        return f"{p:.2f}{NBSP}%"
    if 99.9 < p < 100:
        return f"> 99.9{NBSP}%"
    return f"{p:.1f}{NBSP}%" if p < 10 or 99 < p < 100 else f"{p:.0f}{NBSP}%"


def _three(value: float) -> str:
    """Three significant digits without an exponent."""
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def duration(ns: float | None) -> str:
    """Nanoseconds as text, in the unit that fits.

    >>> duration(850), duration(13_700), duration(8_660_000), duration(2_500_000_000), duration(7_260 * 10**9)
    ('850\\xa0ns', '13.7\\xa0µs', '8.66\\xa0ms', '2.50\\xa0s', '2\\xa0h\\xa01\\xa0min')
    """
    if ns is None:
        return "not known"
    if abs(ns) < 1_000:
        return f"{ns:.0f}{NBSP}ns"
    for size, unit in ((1e6, "µs"), (1e9, "ms"), (120e9, "s")):
        if abs(ns) < size:
            scale = {"µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
            return f"{_three(ns / scale)}{NBSP}{unit}"
    minutes = round(ns / 60e9)
    if minutes < 120:
        return f"{minutes}{NBSP}min"
    return f"{minutes // 60}{NBSP}h{NBSP}{minutes % 60}{NBSP}min"


def dollars(usd: float | None) -> str:
    """Money as text; small amounts keep two significant digits.

    >>> dollars(3.06), dollars(0.0042), dollars(1234.5)
    ('$3.06', '$0.0042', '$1,234.50')
    """
    if usd is None:
        return "not known"
    if 0 < usd < 0.01:
        return f"${usd:.2g}" if usd >= 0.0001 else f"${usd:.1e}"
    return f"${usd:,.2f}"


def quantity(value: float | None, unit: str) -> str:
    """A number with SI prefix and unit.

    >>> quantity(15.7e12, "FLOP/s"), quantity(900e9, "B/s"), quantity(5120, "B")
    ('15.7\\xa0TFLOP/s', '900\\xa0GB/s', '5.12\\xa0kB')
    """
    if value is None:
        return "not known"
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{_three(value / size)}{NBSP}{prefix}{unit}"
    return f"{_three(value)}{NBSP}{unit}"
