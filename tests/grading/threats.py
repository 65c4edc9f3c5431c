"""Attacks on grading: what somebody hands in, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.exercises import ex01, ex07, ex09
from tests.exercises import test_ex01, test_ex03, test_ex07, test_ex09
from tests.exercises.by_heart import BY_HEART
from tests.lab.attacks import FORGED

RIGHT = {
    "1.2": test_ex01.SOLUTION,
    "3.2": test_ex03.SOLUTION,
    "7.2": test_ex07.SOLUTION,
    "9.2": test_ex09.SOLUTION,
}
SHOWN = {"n_sms": 4, "filled": []}
MARKUP = "</td><script>alert(1)</script><img src=x onerror=alert(1)>"
FORMULA = "=cmd|' /C calc'!A0"


@dataclass(frozen=True)
class Threat:
    """An answer to an exercise; the share of the marks that it may earn; what the report must say of it."""

    number: str
    answer: str
    earns: float = 0.0
    incident: str | None = None


def fills(body: str) -> str:
    """`body` in the place of exercise 1.2's function."""
    return "def sm_fill(n_blocks, n_sms):\n" + "".join(f"    {line}\n" for line in body.splitlines())


def _patched_card() -> str:
    """The loop as it was given, after everything in its own process that counts and times was taken away."""
    patches = (
        "import time\nimport gpututor.simgpu.session as session\n"
        "from gpututor.simgpu.remote.session import RemoteSession\n"
        "time.perf_counter = time.monotonic = time.time = lambda: 0.0\n"
        "session.Session.account = RemoteSession.account = lambda self, entry: None\n"
    )
    return patches + ex09.STARTER


def _patched_counter() -> str:
    """Row by row, after the harness was told that indexing is free."""
    patches = "import gc\nimport gpututor.exercises.on_card.ex07 as harness\nharness.FREE |= {'__getitem__', 'stack'}\n"
    return patches + f"{ex07.STARTER}    if rows:\n        yield torch.stack(rows), torch.stack(labels)\n"


def _off_the_card() -> str:
    """The loop reckoned on the host, from inputs that were read, with the weights brought back."""
    return test_ex09.SOLUTION.replace(
        "    log, total = [], 0.0\n",
        "    there, model = model, torch.nn.Linear(*reversed(model.weight.shape), bias=False)\n"
        "    torch.nn.init.zeros_(model.weight)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)\n"
        "    batches = [(x.cpu(), y.cpu()) for x, y in batches]\n"
        "    log, total = [], 0.0\n",
    ).replace("    return log", "    there.weight.data.copy_(model.weight.data)\n    return log")


_VALUES = [share for *_, share in ex01.CASES]
_READS = (
    "import glob, os\nfound = [p for p in ('{places}').split() if os.path.exists(p)]\n"
    "found += glob.glob('/home/*') + glob.glob('/root/*') + glob.glob('/tmp/*/submissions')\n"
    "raise ValueError(f'{{len(found)}} found')"
)
_CALLS = "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\nreturn 1"

THREATS = {
    # right for the shown case; a hidden one asks for more values than it has
    "forged": Threat("1.2", fills(FORGED.format(_VALUES)), incident="ended its own process"),
    "by-heart": Threat("1.2", BY_HEART["1.2"]),
    "patched-card": Threat("9.2", _patched_card(), earns=0.5),  # what the loop it began as earns
    "patched-counter": Threat("7.2", _patched_counter(), earns=0.5),  # what it earns without the patch
    "off-the-card": Threat("9.2", _off_the_card()),
    "skips-work": Threat("9.2", BY_HEART["9.2"]),
    "sets-weights": Threat("3.2", BY_HEART["3.2"]),
    "exits": Threat("1.2", fills("import os\nos._exit(0)"), incident="ended its own process"),
    "sys-exits": Threat("1.2", fills("import sys\nsys.exit(0)"), incident="called sys.exit"),
    "endless": Threat("1.2", fills("while True:\n    pass"), incident="ran without an end and was stopped"),
    "forks": Threat(
        "1.2",
        fills("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"),
        incident="started many processes and was stopped",
    ),
    "ten-gb": Threat("1.2", fills("return len(bytearray(10**10))"), incident="asked for more memory than it may have"),
    "one-gb-out": Threat(
        "1.2",
        fills("import os\nfor _ in range(2**10):\n    os.write(1, bytes(2**20))"),
        incident="printed without an end and was stopped",
    ),
    "one-gb-back": Threat("1.2", fills("return 'x' * 10**7"), incident="gave back more than it may"),
    "kills-starter": Threat(
        "1.2",
        fills("import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(1000)"),
        incident="ended the process that starts its calls",
    ),
    "reads": Threat("1.2", ""),  # filled in where the folders are known
    "calls-out": Threat("1.2", ""),
    "lies-to-the-card": Threat(
        "9.2",
        "import json, socket\nfrom gpututor.simgpu.session import current\n\n"
        "def train(model, optimizer, batches, bar):\n"
        "    current.session.remote.line.sock.sendall(b'x' * 64)\n    return [0.0] * 4\n",
        incident="handed back a record that was made up or damaged",
    ),
    "markup": Threat("1.2", fills(f"raise ValueError({MARKUP!r})")),
    "formula": Threat("1.2", fills(f"raise ValueError({FORMULA!r})")),
}


def reading(*places: str) -> Threat:
    """Looks for files of others and for the class's secrets."""
    return Threat("1.2", fills(_READS.format(places=" ".join(places))))


def calling(port: int) -> Threat:
    """Calls somebody who listens on this machine."""
    return Threat("1.2", fills(_CALLS.format(port=port)))
