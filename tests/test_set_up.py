from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def set_up(tmp_path, monkeypatch):
    """The script tools/set_up.py, pointed at an empty folder with our constraints."""
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "tools" / "set_up.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "set_up", module)
    spec.loader.exec_module(module)
    (tmp_path / ".venv").mkdir()
    (tmp_path / "constraints.txt").write_text("numpy==2.4.6\ntorch==2.13.0\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    return module


@pytest.fixture
def environments(set_up, monkeypatch):
    """Record how .venv would be made; nothing is created."""
    made = []
    monkeypatch.setattr(set_up.venv, "create", lambda folder, **how: made.append(how))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    return made


@pytest.mark.parametrize(
    ("found", "shared"),
    [
        pytest.param(("2.13.0+cu130", "13.0"), True, id="CUDA build"),
        pytest.param(("2.13.0+cpu", "-"), False, id="CPU build"),
        pytest.param(("2.6.0+cu124", "12.4"), False, id="CUDA build that is too old"),
        pytest.param(None, False, id="no torch"),
    ],
)
def test_only_a_usable_cuda_build_is_shared_with_the_new_environment(set_up, environments, monkeypatch, found, shared):
    monkeypatch.setattr(set_up, "find_torch", lambda python: found and set_up.Torch(*found, "/opt/site-packages"))

    set_up.make_environment()

    assert environments == [{"with_pip": True, "system_site_packages": shared}]


def test_a_python_without_venv_is_told_what_to_install(set_up, monkeypatch):
    def refuse(*_args, **_how):
        raise OSError("ensurepip is not available")

    monkeypatch.setattr(set_up.venv, "create", refuse)
    monkeypatch.setattr(set_up, "find_torch", lambda python: None)

    with pytest.raises(SystemExit, match="install python3-venv first"):
        set_up.make_environment()


def test_a_torch_that_stays_is_not_pinned(set_up):
    assert set_up.constraints(keep_torch=True).read_text() == "numpy==2.4.6\n"


def test_a_torch_that_is_installed_is_pinned(set_up):
    assert "torch==2.13.0" in set_up.constraints(keep_torch=False).read_text()


def test_this_python_has_a_torch_and_says_where(set_up):
    import torch

    found = set_up.find_torch(Path(sys.executable))

    assert found.version == torch.__version__
    assert (Path(found.folder) / "torch").is_dir()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("  Downloading torch-2.13.0-cp311.whl (900.1 MB)", "fetching torch (900.1 MB)"),
        ("  Downloading https://example.org/a/numpy-2.4.6-cp311.whl (18 MB)", "fetching numpy (18 MB)"),
        ("Installing collected packages: mpmath, torch", "unpacking all of them; torch takes longest"),
    ],
)
def test_a_line_of_pip_becomes_words(set_up, line, words):
    assert set_up.in_words(*set_up.TOLD.match(line).groups()) == words


def test_the_pinned_torch_is_the_one_that_the_range_allows(set_up):
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")

    assert "\ntorch==2.13.0\n" in pins
    assert set_up.Torch("2.13.0+cpu", "-", "").is_known


@pytest.mark.parametrize(
    ("version", "known"), [("2.9.1", False), ("2.10.0", True), ("2.14.2", True), ("2.15.0", False)]
)
def test_a_torch_that_gpututor_does_not_know_is_not_kept(set_up, version, known):
    assert set_up.Torch(version, "13.0", "").is_known is known


def test_the_set_up_knows_the_same_releases_as_the_simulated_gpu(set_up):
    from gpututor.simgpu.versions import FIRST, LAST

    assert (set_up.FIRST_TORCH, set_up.LAST_TORCH) == (FIRST, LAST)
