"""Which torch the simulated GPU works with."""

from __future__ import annotations

import pytest
import torch

from gpututor.errors import TorchNotSupported
from gpututor.simgpu.versions import check_torch


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0+cpu", "2.14.1+cu130", torch.__version__])
def test_known_versions_pass(version):
    check_torch(version)


@pytest.mark.parametrize("version", ["1.13.1", "2.9.1", "2.15.0a0", "3.0.0", "unknown"])
def test_another_version_is_refused_in_words(version):
    with pytest.raises(TorchNotSupported, match=r"2\.10 to 2\.14"):
        check_torch(version)
