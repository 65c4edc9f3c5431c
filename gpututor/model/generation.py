"""What older versions of torch did more slowly on the card: constants of the model that were others then."""

from __future__ import annotations

from gpututor.model.constants import group

HALF_WALKS_FROM = (1, 12)


def constants_with(torch_version: str | None, layout: str = "nchw") -> dict[str, float]:
    """The constants that differ with this version of torch, such as "1.9", for `constants.other`; {} for today's.

    With channels last ("nhwc") nothing differs: NVIDIA's 11 runs of networks for pictures that train so in mixed
    precision with torch 1.9 say that (2 % bias, 22 % with what the others show).

    >>> constants_with("2.3"), constants_with(None), constants_with("1.9", "nhwc")
    ({}, {}, {})
    """
    if torch_version is None or layout == "nhwc":
        return {}
    major, _, rest = torch_version.partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdigit() and minor.isdigit()) or (int(major), int(minor)) >= HALF_WALKS_FROM:
        return {}
    return {"walk.half_bytes_per_clock": group("generation").half_bytes_per_clock_before_1_12}
