"""Accounts can be told apart, by colour or by pattern, also by eyes that see fewer colours."""

from itertools import combinations

import numpy as np
import pytest

from gpututor.charts.colours import COLOUR, Pattern, bands, css_fill, pattern
from gpututor.ledger import IDLE, Account

# Machado, Oliveira and Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
# severity 1.0; for linear RGB.
EYES = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
# Ottosson 2020, "A perceptual color space for image processing": linear sRGB to LMS, and cube roots to OKLab.
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
ON_ONE_CHART = (Account.BUSY_UNSPLIT, *IDLE)
INK = "#14161a"


def linear(colour):
    """sRGB "#rrggbb" as linear RGB (IEC 61966-2-1)."""
    srgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    return TO_LAB @ np.cbrt(TO_LMS @ np.clip(rgb, 0, 1))


def contrast(one, other):
    """WCAG 2.2, "contrast ratio"."""
    lights = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("eye", EYES)
def test_plain_accounts_of_one_chart_differ_in_colour(eye):
    plain = [COLOUR[a] for a in ON_ONE_CHART if pattern(a) is Pattern.SOLID]

    distances = [
        100 * np.linalg.norm(oklab(EYES[eye] @ linear(a)) - oklab(EYES[eye] @ linear(b)))
        for a, b in combinations(plain, 2)
    ]

    assert min(distances) > 11


def test_patterned_accounts_of_one_chart_have_each_a_pattern_of_its_own():
    patterns = [pattern(a) for a in ON_ONE_CHART if pattern(a) is not Pattern.SOLID]

    assert len(set(patterns)) == len(patterns)


def test_every_account_has_a_colour():
    assert set(COLOUR) == set(Account)


def test_no_two_idle_accounts_share_a_fill():
    assert len({css_fill(account) for account in IDLE}) == len(IDLE)


@pytest.mark.parametrize("account", Account)
def test_the_bands_of_a_fill_reach_from_the_bottom_to_the_top(account):
    edges = [edge for begin, end, _ in bands(account) for edge in (begin, end)]

    assert edges[0] == 0
    assert edges[-1] == 1
    assert edges[1:-1:2] == edges[2:-1:2]


@pytest.mark.parametrize("account", [Account.LAUNCH_OVERHEAD, Account.WAITING_FOR_INPUT, Account.EXPOSED_COPY])
def test_ink_in_a_host_bar_is_readable(account):
    assert contrast(INK, COLOUR[account]) >= 4.5
