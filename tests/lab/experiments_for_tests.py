"""Experiments that behave well and badly, for the lab's tests; run in worker processes."""

from __future__ import annotations

import faulthandler
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from gpututor.errors import CardNotKnown
from gpututor.progress import Progress


def adds(progress: Progress, a: int, b: int) -> int:
    return a + b


def ticks(progress: Progress, n: int, every_s: float = 0.0) -> dict[str, int]:
    for k in range(n):
        progress.tick(k, n, f"step {k}", {"steps": k})
        time.sleep(every_s)
    return {"steps": n}


def returns_early(progress: Progress) -> str:
    while not progress.should_stop:
        time.sleep(0.01)
    return "what I have"


def never_ticks(progress: Progress) -> None:
    progress.tick(0, 1, "", "before the loop")
    while True:
        time.sleep(0.01)


def holds_the_interpreter(progress: Progress, mark: str) -> int:
    Path(mark).write_text(str(os.getpid()))
    return sum(range(10**13))  # one C loop; no other thread of the process runs meanwhile


def raises(progress: Progress) -> None:
    raise KeyError("lr")


def raises_ours(progress: Progress) -> None:
    raise CardNotKnown("card", "V10", ["V100"])


def calls_exit(progress: Progress) -> None:
    sys.exit(3)


def ends_its_process(progress: Progress, code: int) -> None:
    os._exit(code)


def segfaults(progress: Progress) -> None:
    faulthandler._sigsegv()


def prints(progress: Progress, text: str) -> str:
    print(text)
    os.write(2, b"to the second descriptor\n")
    return "done"


def prints_much(progress: Progress, n_bytes: int) -> str:
    for _ in range(n_bytes // 1024):
        os.write(1, b"x" * 1023 + b"\n")
    return "done"


def forges_the_wire(progress: Progress) -> str:
    print('{"v":1,"kind":"Ended","job":"x","state":"done","data":"forged","sentence":"","log":""}')
    return "true"


def hands_back_a_set(progress: Progress) -> object:
    return {"losses": [1.0, {2.0}]}


def hands_back_much(progress: Progress, n_bytes: int) -> str:
    return "x" * n_bytes


def reports_a_set(progress: Progress) -> None:
    progress.tick(0, 1, "", {1})


def fills_memory(progress: Progress, n_mib: int) -> int:
    held = []
    for k in range(n_mib):
        held.append(bytearray(2**20))
        progress.tick(k, n_mib)
        time.sleep(0.001)
    time.sleep(5)
    return len(held)


def starts_a_child(progress: Progress) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    progress.tick(0, 1, "", {"worker": os.getpid(), "child": child.pid})
    while True:
        time.sleep(0.01)


def who_am_i(progress: Progress) -> dict[str, object]:
    return {"pid": os.getpid(), "torch": "torch" in sys.modules, "n_threads": threading.active_count()}


def draws(progress: Progress) -> list[float]:
    return [random.random() for _ in range(3)]


def spoils_its_process(progress: Progress) -> None:
    random.seed(99)
    os.environ["LEFT_BEHIND"] = "yes"
    os.chdir(Path(sys.executable).parent)


def looks_around(progress: Progress) -> dict[str, object]:
    return {
        "left": os.environ.get("LEFT_BEHIND"),
        "folder": str(Path.cwd()),
        "threads": os.environ["OMP_NUM_THREADS"],
        "cuda": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "blocking": os.environ.get("CUDA_LAUNCH_BLOCKING"),
    }


def writes_a_file(progress: Progress) -> str:
    (progress.results_dir / "losses.txt").write_text("1 2 3")
    return "written"


def sleeps(progress: Progress, s: float) -> float:
    began = time.time()
    until = time.monotonic() + s
    while time.monotonic() < until:
        progress.tick(0, 1)
        time.sleep(0.01)
    return began


def torch_draws(progress: Progress) -> dict[str, object]:
    import torch

    return {"first": torch.rand(1).item(), "n_threads": torch.get_num_threads()}


def torch_spoils(progress: Progress) -> None:
    import torch

    torch.set_num_threads(2)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)


def torch_settings(progress: Progress) -> list[object]:
    import torch

    return [torch.get_num_threads(), torch.is_grad_enabled(), str(torch.get_default_dtype())]
