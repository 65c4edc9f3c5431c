"""What a learner's process does with code that is to launch something: run it on a simulated card and tell what it did.

Imported in the learner's process, next to the learner's code, so nothing in here judges or prices. What it hands back
is data: a tape of what was launched, and whatever the code gave. All of it may be made up; whoever judges it prices
the tape anew and compares outputs with its own. Where the process was handed a socket to a card in another process
(`card_fd`), the tape and the values on the card are that process's, and only their number is handed back from here.

What a harness needs on the card before the learner's code runs it may make itself, uncounted, in `make`; nothing can be
read there. Or an exercise names functions that lay it there (`coded.Laid`), and `make` takes it with `laid(…)`: where
the card lives apart, the learner's process never sees how it is made.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from importlib import import_module
from typing import Any


def recorded(
    machine: str,
    make: Callable[[], Callable[[], Any]],
    *,
    numerics: bool = True,
    clock: str = "virtual",
    card_fd: int | None = None,
) -> dict[str, Any]:
    """Run what `make` gives on this machine's simulated card; gives "tape" and "gave", its result as data.

    `make()` sets things up, uncounted, and returns the function that is counted. The card is waited for before it and
    after it, so the whole of it is one step of the tape (a file's bytes as text). With `card_fd` the card lives at
    the other end of that socket, and what comes back is only "recording", the run's number there.
    """
    if card_fd is not None:
        return _remotely(card_fd, machine, make)
    from gpututor.model.tape import Sync, Tape
    from gpututor.simgpu import simulated_gpu

    with simulated_gpu(machine, numerics=numerics, clock=clock) as sim:
        work = make()
        sim.account(Sync("synchronize"))
        first = len(sim.tape.entries)
        sim.begin_step()
        gave = work()
        sim.account(Sync("synchronize"))
        sim.end_run()
        tape = Tape("your code", sim.tape.entries[first:], [None], n_cards=sim.tape.n_cards, clock=clock)
        return {"tape": packed(tape), "gave": as_data(gave) if numerics else None}


def recorded_ranks(machine: str, n_ranks: int, make: Callable[[int], Callable[[], Any]]) -> dict[str, Any]:
    """The same for several processes, each with a card of the machine: `make(rank)` is called in each of them.

    Gives "tape", which is rank 0's, and "gave", a list of what each rank's function gave. A process group is there
    already, and all ranks wait for one another before what is counted.
    """
    import torch.distributed as dist

    from gpututor.model.tape import Sync, Tape
    from gpututor.simgpu.cards.distributed import launch
    from gpututor.simgpu.session import current

    def run(rank: int) -> tuple[int, Any]:
        dist.init_process_group("nccl")
        work, session = make(rank), current.session
        session.account(Sync("synchronize"))
        dist.barrier()
        first = len(session.tape.entries)
        session.begin_step()
        gave = work()
        session.account(Sync("synchronize"))
        session.end_run()
        return first, as_data(gave)

    ran = launch(run, machine, n_ranks, what="your code")
    tape = Tape("your code", ran.tapes.tapes[0].entries[ran.results[0][0] :], [None], n_ranks=n_ranks)
    return {"tape": packed(tape), "gave": [gave for _, gave in ran.results]}


def _remotely(card_fd: int, machine: str, make: Callable[[], Callable[[], Any]]) -> dict[str, Any]:
    from gpututor.simgpu.remote.session import session_over

    global _n_recordings
    session = session_over(card_fd, machine)
    with session:
        work = make()
        session.start()
        session.end(work())
    _n_recordings += 1
    return {"recording": _n_recordings - 1}


_n_recordings = 0


def laid(told: Any) -> list[Any]:
    """What an exercise wants on the card, in `make`: tensors that its own function makes, there or in this process.

    `told` is what became of the harness's argument: a number on the card, or the function's name and its arguments.
    """
    if isinstance(told, int):
        return placed(told)
    where, *args = told
    module, _, name = where.partition(":")
    made: list[Any] = getattr(import_module(module), name)(*args)
    return made


def placed(k: int = 0) -> list[Any]:
    """The tensors that the judge has laid on the card in another process under this number; for `make`.

    Raises:
        NotImplementedError: the card lives in this process, where nobody has laid anything.
    """
    from gpututor.simgpu.session import current

    if current.session.remote is None:
        raise NotImplementedError("tensors are laid on a card in another process only; make them here")
    tensors: list[Any] = current.session.remote.placed(k)
    return tensors


def packed(tape: Any) -> str:
    """A tape as text."""
    from gpututor.model import tape_file

    return base64.b64encode(tape_file.to_bytes(tape)).decode("ascii")


def as_data(value: Any) -> Any:
    """Tensors anywhere in it as nested lists, read after the run and therefore not part of it."""
    if hasattr(value, "tolist"):
        return value.detach().cpu().tolist() if hasattr(value, "detach") else value.tolist()
    if isinstance(value, dict):
        return {str(name): as_data(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_data(each) for each in value]
    return value
