"""The process in which a script runs: `python -m gpututor.run.child FOLDER`, started by the parent.

Torch is told of the simulated card, CUDA's names lead to it, and the script runs as `__main__`. However it ends (its
end, an exception, `sys.exit`, `os._exit`, a request to stop), the tape of what it did is written first.
"""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from gpututor.run import request as requests
from gpututor.run import script
from gpututor.run.limits import StopRun
from gpututor.run.request import Request

ASK_AGAIN_S = 0.002
_as_long_as_the_process: list[object] = []  # the script's threads and atexit functions need them to its very end


def main(folder: Path) -> None:
    """Run what the request in `folder` asks for."""
    request = requests.read(folder)
    if request.added_path is not None:
        os.environ.pop("PYTHONPATH", None)
        before = os.environ.pop("GPUTUTOR_PYTHONPATH", "")
        if before:
            os.environ["PYTHONPATH"] = before
    if request.here:
        _measured(request, folder)
    else:
        _simulated(request, folder)


def _measured(request: Request, folder: Path) -> None:
    from gpututor.run.here import Watched

    watched = Watched(request, folder)
    watched.watch.install(setattr)
    run_under(watched, request)


def _simulated(request: Request, folder: Path) -> None:
    from gpututor.run.recorder import Recorder

    hide_real_gpu(request.visible_gpus)
    from gpututor.simgpu import as_cuda, simulated_gpu
    from gpututor.simgpu.cuda.swaps import Swaps

    session = simulated_gpu(request.machine or None, numerics=request.numerics, what=request.name, clock=request.clock)
    recorder = Recorder(request, folder, session)
    names = as_cuda()
    session.__enter__()
    names.__enter__()
    _as_long_as_the_process.extend((session, names))
    recorder.watch.install(Swaps().put)
    load_for_the_first_op()
    run_under(recorder, request)


def run_under(recorder: Any, request: Request) -> None:
    """Run the script and let `recorder` finish whatever happens; gives control back only by raising SystemExit."""
    pid = os.getpid()

    def finish() -> None:
        if os.getpid() == pid:  # a worker that was forked off has nothing to report
            recorder.finish()

    atexit.register(finish)  # first in, last out: after the script's own, and after its threads have ended
    _finish_before_exit(finish)
    _stop_when_asked(recorder, finish, pid)
    _end_threads_quietly()
    recorder.begin()
    try:
        script.run(request)
    except StopRun:
        sys.exit(0)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  shown as Python shows it, then the process ends as it would
        recorder.error = f"{type(error).__name__}: {error}"
        _show_and_end(error)


def _show_and_end(error: BaseException) -> NoReturn:
    error.__traceback__ = script.own_frames(error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        traceback.print_exception(error)
        sys.exit(128 + signal.SIGINT)
    sys.excepthook(type(error), error, error.__traceback__)
    sys.exit(1)


def _end_threads_quietly() -> None:
    """A step may be over in a thread of the script's; being stopped there is no error to print."""
    show = threading.excepthook

    def shown(told: Any) -> None:
        if not issubclass(told.exc_type, StopRun):
            show(told)

    threading.excepthook = shown


def _finish_before_exit(finish: Any) -> None:
    """`os._exit` skips every clean-up, so what was seen is written before it."""
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        finish()
        leave(status)

    os._exit = _exit


def _stop_when_asked(recorder: Any, finish: Any, pid: int) -> None:
    """The parent asks by SIGTERM: the first time the script may clean up, the second time it ends at once."""

    def asked(number: int, frame: FrameType | None) -> None:
        if os.getpid() != pid:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        if recorder.stopped is None and in_destructor(frame):
            threading.Timer(ASK_AGAIN_S, os.kill, (pid, number)).start()
            return
        if recorder.stopped is None:
            recorder.stopped = "when asked to"
            raise StopRun
        finish()
        os._exit(128 + number)

    if sys.platform != "win32":
        signal.signal(signal.SIGTERM, asked)


def in_destructor(frame: FrameType | None) -> bool:
    """Whether a `__del__` is at work, out of which Python lets no exception through."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def load_for_the_first_op() -> None:
    """Load what torch loads itself at the first op that somebody listens to, so that no script waits for it.

    It takes half a second, more on a busy machine, and would count towards --seconds. Without a listener, as under
    plain Python, torch never loads it.
    """
    import torch

    if torch.distributed.is_available():
        importlib.import_module("torch.distributed.tensor")


def hide_real_gpu(before: str | None) -> None:
    """Let torch look for real GPUs while the environment hides them, then give the script its environment back."""
    import torch

    torch.cuda.device_count()  # asked once: the driver keeps its answer for the life of the process
    if before is None:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = before


if __name__ == "__main__":
    main(Path(sys.argv[1]))
