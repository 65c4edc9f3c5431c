"""What a page loads before it shows anything: nothing that takes long."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "import sys; from gpututor import page; print(*{name.partition('.')[0] for name in sys.modules})"


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Top-level names of the modules that the furniture loads."""
    return set(
        subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    )


@pytest.mark.parametrize("heavy", ["torch", "altair", "pandas", "scipy", "matplotlib"])
def test_a_page_opens_without(loaded, heavy):
    assert heavy not in loaded


def test_a_chart_can_be_asked_for_all_the_same():
    import gpututor.page as gt

    assert callable(gt.curve)
    assert set(gt.__all__) <= {name for name in gt.__all__ if hasattr(gt, name)}


def test_a_name_that_is_none_is_an_attribute_error():
    import gpututor.page as gt

    with pytest.raises(AttributeError, match="no attribute 'curves_of'"):
        gt.curves_of  # noqa: B018
