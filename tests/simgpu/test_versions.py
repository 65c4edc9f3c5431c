"""Which torch the simulated GPU works with."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gpututor.errors import TorchNotSupported
from gpututor.simgpu.versions import FIRST, LAST, check_torch


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0+cpu", "2.14.1+cu130", torch.__version__])
def test_known_versions_pass(version):
    check_torch(version)


@pytest.mark.parametrize("version", ["1.13.1", "2.9.1", "2.15.0a0", "3.0.0", "unknown"])
def test_another_version_is_refused_in_words(version):
    with pytest.raises(TorchNotSupported, match=r"2\.10 to 2\.14"):
        check_torch(version)


@pytest.mark.parametrize(("version", "what"), [("2.9.1", "older"), ("2.15.0a0", "newer"), ("3.0.0", "newer")])
def test_the_refusal_says_what_is_wrong_with_a_version(version, what):
    with pytest.raises(TorchNotSupported, match=rf"torch {re.escape(version)} is installed, which is {what}"):
        check_torch(version)


def test_what_is_no_version_is_said_to_be_none():
    with pytest.raises(TorchNotSupported, match=r"calls itself 'unknown', which is no version"):
        check_torch("unknown")


@pytest.mark.parametrize("version", ["2.9.1", "2.15.0", "unknown"])
def test_the_refusal_gives_the_line_that_installs_a_known_one(version):
    with pytest.raises(TorchNotSupported) as refused:
        check_torch(version)
    (wanted,) = re.findall(r'pip install "torch>=(\d+\.\d+),<(\d+\.\d+)"', str(refused.value))

    check_torch(f"{wanted[0]}.0")
    with pytest.raises(TorchNotSupported):
        check_torch(f"{wanted[1]}.0")


def test_the_package_asks_for_the_releases_that_it_knows():
    wanted = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")

    assert f'"torch>={FIRST[0]}.{FIRST[1]},<{LAST[0]}.{LAST[1] + 1}"' in wanted


def test_torch_is_looked_at_before_any_inner_name_is():
    code = (
        "import torch; torch.__version__ = '2.9.1'\n"
        "from gpututor.errors import TorchNotSupported\n"
        "try:\n    from gpututor.simgpu import tensor\n"
        "except TorchNotSupported as refused:\n    print(refused)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("torch 2.9.1 is installed, which is older")


def test_a_device_that_lacks_one_name_is_refused_by_that_name():
    code = (
        "import torch; del torch.jit._builtins._find_builtin\n"
        "from gpututor.errors import TorchNotSupported\n"
        "from gpututor.simgpu import simulated_gpu\n"
        "try:\n    simulated_gpu()\n"
        "except TorchNotSupported as refused:\n    print(refused)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "lacks torch.jit._builtins._find_builtin, which gpututor needs for scripted functions" in done.stdout
