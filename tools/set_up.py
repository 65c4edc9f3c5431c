"""Make .venv and install gpututor into it, saying what happens. Called by the Makefile; needs Python alone.

    python tools/set_up.py lessons|test|dev [arguments for pip]

Which torch the environment gets:

* torch is in .venv already, 2.10 to 2.14: it stays, whatever build it is.
* .venv is new, and the Python that runs this script has a CUDA build, 2.10 to 2.14: .venv is made
  with sight of that Python's packages, so the same torch is used and none is downloaded.
* Else pip installs the version that constraints.txt pins.
"""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
SETS = {"lessons": "", "test": "[test]", "dev": "[dev]"}  # each holds the ones before it
OLDEST_PYTHON = (3, 10)
FIRST_TORCH, LAST_TORCH = (2, 10), (2, 14)  # as gpututor/simgpu/versions.py has them
ASK_TORCH = "import torch; print(torch.__version__, torch.version.cuda or '-', torch.__path__[0][:-6], sep='\\n')"
TOLD = re.compile(r"^(?:  )?(Downloading|Building wheel for|Installing collected packages)[ :]+(\S+)(.*)")


def main(wanted: str, *pip_arguments: str) -> None:
    """Bring .venv to the set `wanted` and stamp it."""
    this = sys.version.split()[0]
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(f"gpututor needs Python 3.10 or later, and this is {this}; name another with PYTHON=python3.12, say.")
    if not PYTHON.exists():
        make_environment()
    found = find_torch(PYTHON)
    keep = found is not None and found.is_known
    if found and keep:
        print(f"Keeping torch {found.version}, which is there already.", flush=True)
    else:
        print("Installing torch, marimo and the rest into .venv; the first time this takes some minutes.", flush=True)
    install(wanted, keep_torch=keep, pip_arguments=pip_arguments)
    for name in list(SETS)[: list(SETS).index(wanted) + 1]:
        (VENV / f"ready-{name}").touch()
    print("Set-up is done.", flush=True)


def make_environment() -> None:
    """Create .venv; if this Python holds a usable CUDA build of torch, with sight of its packages."""
    print(f"Making .venv with Python {sys.version.split()[0]}.", flush=True)
    own = find_torch(Path(sys.executable))
    share = own is not None and own.cuda != "-" and own.is_known
    if own and share:
        print(f"This Python has torch {own.version} for CUDA {own.cuda}; .venv will use it.", flush=True)
    elif own and own.cuda != "-":
        print(f"This Python's torch {own.version} is none from 2.10 to 2.14, so .venv gets its own.", flush=True)
    in_venv = sys.prefix != sys.base_prefix
    try:
        venv.create(VENV, with_pip=True, system_site_packages=share and not in_venv)
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"Python could not make .venv ({error}); on Debian and Ubuntu, install python3-venv first.")
    if own and share and in_venv:  # a virtual environment's packages are no system packages: name their folder
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        (VENV / "lib" / version / "site-packages" / "torch_from_elsewhere.pth").write_text(f"{own.folder}\n")


@dataclass(frozen=True)
class Torch:
    """A torch that some Python can import; `cuda` is the version it was built for, or "-"."""

    version: str
    cuda: str
    folder: str

    @property
    def is_known(self) -> bool:
        """Whether gpututor works with it."""
        return FIRST_TORCH <= version_tuple(self.version)[:2] <= LAST_TORCH


def find_torch(python: Path) -> Torch | None:
    """The torch that `python` imports, or None."""
    answer = subprocess.run([str(python), "-c", ASK_TORCH], capture_output=True, text=True, check=False)
    lines = answer.stdout.splitlines()
    return Torch(*lines) if answer.returncode == 0 and len(lines) == 3 else None


def version_tuple(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "2.13.0+cu126" gives (2, 13, 0)."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def constraints(*, keep_torch: bool) -> Path:
    """The pins to install by: ours, less torch's where the torch that is there stays."""
    pins = ROOT / "constraints.txt"
    if not keep_torch:
        return pins
    lines = [line for line in pins.read_text(encoding="utf-8").splitlines() if not line.startswith("torch==")]
    loosened = VENV / "constraints-without-torch.txt"
    loosened.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return loosened


def install(wanted: str, *, keep_torch: bool, pip_arguments: tuple[str, ...]) -> None:
    """Install gpututor in editable form with the packages of one set; on failure, show the end of pip's own words."""
    command = [
        str(VENV / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--progress-bar=off",
    ]
    command += ["--constraint", str(constraints(keep_torch=keep_torch)), "--editable", f"{ROOT}{SETS[wanted]}"]
    said: list[str] = []
    with subprocess.Popen(
        [*command, *pip_arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            said.append(line)
            told = TOLD.match(line)
            if told:
                print("  " + in_words(*told.groups()), flush=True)
    (VENV / "install.log").write_text("".join(said), encoding="utf-8")
    if pip.returncode:
        print("".join(said[-15:]))
        sys.exit("pip could not install the packages (its last words are above, all of them in .venv/install.log).")


def in_words(doing: str, what: str, rest: str) -> str:
    """One line of pip's as a reader wants it.

    >>> in_words("Downloading", "https://example.org/torch-2.13.0-cp311-manylinux.whl", " (900.1 MB)")
    'fetching torch (900.1 MB)'
    """
    if doing == "Downloading":
        return f"fetching {Path(what).name.partition('-')[0]}{rest}"
    if doing.startswith("Building"):
        return f"building {what}"
    return "unpacking all of them; torch takes longest"


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in SETS:
        sys.exit(f"usage: set_up.py {'|'.join(SETS)} [arguments for pip]")
    main(*sys.argv[1:])
