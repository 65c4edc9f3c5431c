"""The card's side of the socket: a session that a program in another process uses, and the tape that it leaves.

The process that runs this never imports the program. What the program sends is looked at field by field; nonsense ends
the run with one sentence. An operator's own error goes back to the program, which may go on.
Values reach the program only where a copy or a wait is accounted, and an error other than a full card counts as a wait
too, so that nothing is learned from provoking one. Before the counted part begins and after it nothing can be read at
all: work done there can't be taken into the counted part, or out of it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from gpututor.errors import GpututorError
from gpututor.model import tape_file
from gpututor.model.tape import CopyCall, Sync, Tape
from gpututor.simgpu import factories, simulated_gpu
from gpututor.simgpu.remote import wire
from gpututor.simgpu.remote.calls import Calls, caller, number, text
from gpututor.simgpu.remote.layers import Layers
from gpututor.simgpu.remote.numbered import Numbered
from gpututor.simgpu.remote.operators import Operators
from gpututor.simgpu.remote.terms import Ran, Terms, filled
from gpututor.simgpu.remote.told import error_told, form_told
from gpututor.simgpu.remote.wire import foul
from gpututor.simgpu.session import NO_GRAD, Session, thread
from gpututor.simgpu.special import copy_out
from gpututor.simgpu.tensor import SimTensor

PRECISIONS: Any = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)  # type: ignore[attr-defined]  # made at run time
MAX_GAVE_BYTES = 4 * wire.MIB
TOO_MUCH = "the process that stands for the card has no room for this result; make the work smaller"
NOT_NOW = "values on the card can be read while your function runs, and neither before nor after it"


class Card:
    """One program's card, for as long as its socket is open."""

    def __init__(self, sock: socket.socket, terms: Terms) -> None:
        self.sock, self.terms = sock, terms
        self.ran: list[Ran] = []
        self.session: Session | None = None
        self.numbered = Numbered()
        self.n_ops, self.n_raw_bytes = 0, 0
        self.first_entry: int | None = None
        self.failed: Exception | None = None
        self.reply_raw: list[bytes] = []
        self.operators = Operators(self)
        self.layers = Layers(self)
        self.messages: dict[str, Callable[..., Any]] = {
            "o": self.operators.op,
            "w": self.layers.whole,
            "b": self.layers.backward,
            "r": self.read,
            "q": self.question,
            "c": self.copied_from,
            "a": self.account,
            "t": lambda t, stream: self.calls.record_stream(self.numbered.known(t), stream),
            "p": self.placed,
            "n": self.begin,
            "s": self.start,
            "e": self.end,
        }

    # --- the loop -----------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Answer until the program closes the socket.

        Raises:
            Foul: the program sent what no program sends.
        """
        torch.set_grad_enabled(False)
        try:
            while (frame := wire.receive(self.sock)) is not None:
                body, self.numbered.raw = frame
                self.n_raw_bytes += len(frame[1])
                if self.n_raw_bytes > wire.MAX_RAW_IN_ALL_BYTES:
                    raise foul("gigabytes of tensors")
                if self.first_entry is not None:
                    self.ran[-1].received_bytes += len(frame[1])
                for line in body.split(b"\n"):
                    self.message(line)
        except OSError:  # it closed in the middle of an answer
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Put the session away."""
        self.numbered.tensors.clear()
        self.layers.calls.clear()
        self.first_entry = self.failed = None
        session, self.session = self.session, None
        if session is not None:
            session.__exit__(None, None, None)

    def message(self, line: bytes) -> None:
        """Do what one message says, and answer where an answer is waited for."""
        told = wire.decoded(line, self.numbered.hook)
        if type(told) is not list or len(told) < 2 or told[0] not in (0, 1) or type(told[1]) is not str:
            raise foul("a message without a kind")
        waits, kind, *args = told
        if kind in ("x", "y", "f"):
            {"x": self.numbered.forget, "y": self.layers.forget, "f": allow}[kind](args)
            return
        self.n_ops += 1
        if self.n_ops > self.terms.n_ops:
            raise foul(f"more than {self.terms.n_ops:,} operations in one run")
        call = self.messages.get(kind)
        if call is None or (self.session is None and kind != "n"):
            raise foul("a message at the wrong time")
        if self.failed is not None and not waits:
            return  # an op before it failed, which the program is about to hear
        self.answer(waits, call, args)

    def answer(self, waits: int, call: Callable[..., Any], args: list[Any]) -> None:
        """Call, and send what comes of it, an error of an earlier op first."""
        self.reply_raw = []
        try:
            if self.failed is not None:
                raise self.failed
            reply = {"v": call(*args)}
        except wire.Foul:
            raise
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise foul("a message with odd parts") from None  # the call itself didn't fit
            reply = self.fault(error, waits)
        except Exception as error:  # the operator's own, which is the program's to hear
            reply = self.fault(error, waits)
        if waits:
            if self.session is not None:
                reply["m"] = min(memory.free_bytes for memory in self.session.memories)
            wire.send(self.sock, json.dumps(reply).encode(), self.reply_raw)

    def fault(self, error: Exception, waits: int) -> dict[str, Any]:
        """The reply for an error; one that nobody waits for is kept for the next that does."""
        if not waits:
            self.failed = error
            self.numbered.broken = True
            return {}
        again, self.failed, self.numbered.broken = self.failed is error, None, False
        if self.session is not None and not again and not isinstance(error, torch.OutOfMemoryError | GpututorError):
            try:
                if not isinstance(error, NotImplementedError) and self.session.capturing is None:
                    self.session.account(Sync("error"))
            except RuntimeError:
                pass
        self.reply_raw = []
        return {"e": error_told(RuntimeError(TOO_MUCH) if "can't allocate memory" in str(error) else error)}

    # --- everything else --------------------------------------------------------------------------------------------

    def of(self) -> Session:
        """The session of the present run."""
        assert self.session is not None
        return self.session

    def has_waited(self, since: int) -> bool:
        """Whether a wait or a copy to the host was accounted from this entry on."""
        entries = self.of().tape.entries[since:]
        return any(type(e) is Sync or (type(e) is CopyCall and not e.to_gpu) for e in entries)

    def may_read(self, since: int | None = None) -> None:
        """Refuse to tell values before the counted part; with `since`, if a wait or copy was accounted from there on.

        Raises:
            RuntimeError: it has not begun yet.
        """
        too_early = self.terms.judged and not self.terms.reads_before and self.first_entry is None
        if too_early and (since is None or self.has_waited(since)):
            raise RuntimeError(NOT_NOW)

    def not_data(self, state: Any) -> None:
        """A generator's state came with a message: no data of the program's."""
        if self.first_entry is not None and isinstance(state, torch.Tensor):
            self.ran[-1].received_bytes -= state.numel()

    def read(self, phase: Any, what: Any, t: Any, behind: Any = False) -> Any:
        """A tensor's values, for showing or saving; the copy is accounted."""
        self.may_read()
        thread.caller = caller(phase)
        copy_out(self.of(), text(what), self.numbered.known(t), blocking=behind is not True)
        return wire.described(self.numbered.known(t).host, self.reply_raw)["h"]  # type: ignore[arg-type]  # numerics are on

    def question(self, name: Any, args: Any) -> Any:
        """What the program asks apart from operators."""
        return self.calls.answer(name, args)

    def copied_from(self, target: Any, source: Any) -> None:
        """Values that torch.tensor puts into a new tensor, which is no copy of the program's."""
        self.numbered.known(target)
        factories.copy_from(self.numbered.known(source) if type(source) is SimTensor else source, target)

    def account(self, kind: Any, given: Any) -> Any:
        """An entry of the program's own; an event's time comes back."""
        entry = self.calls.entry(kind, given)
        self.of().account(entry)
        return self.of().player.events.get(given[0]) if kind == "record" else None

    def begin(self, machine: Any) -> Any:
        """A run on a machine begins, with its set-up."""
        if self.session is not None or len(self.ran) >= self.terms.n_runs:
            raise foul("a run more than there is")
        self.session = simulated_gpu(text(machine))
        self.session.__enter__()
        thread.caller = NO_GRAD
        torch.manual_seed(0)
        self.ran.append(Ran(self.session.machine.name))
        self.calls = Calls(self.session, steps=not self.terms.judged)
        return self.session.machine.name

    def placed(self, first: Any, k: Any) -> Any:
        """What the judge had laid on the card under this number, before the counted part: a list of tensors' forms."""
        if self.first_entry is not None:
            raise foul("a wish for what lies there, too late")
        where, args = self.terms.placed[number(k, len(self.terms.placed))]
        module, _, name = where.partition(":")
        made = list(getattr(import_module(module), name)(*args))
        self.numbered.keep(first, made)
        return [form_told(t.form) for t in made]

    def start(self, _: Any = None) -> None:
        """The counted part begins."""
        if self.first_entry is not None or self.ran[-1].over:
            raise foul("a second beginning")
        session = self.of()
        session.account(Sync("synchronize"))
        self.first_entry = len(session.tape.entries)
        if self.terms.judged:
            session.begin_step()

    def end(self, gave: Any) -> None:
        """The counted part ends: the card waits, keeps the tape, and puts its values into what the program gave."""
        session, run = self.of(), self.ran[-1]
        if self.first_entry is None:
            raise foul("an end without a beginning")
        session.account(Sync("synchronize"))
        if self.terms.judged:
            session.end_run()
        tape = session.tape
        kept = Tape("your code", tape.entries[self.first_entry :], [None], n_cards=tape.n_cards, clock=tape.clock)
        run.tape, run.gave, run.over = tape_file.to_bytes(kept), filled(gave), True
        if len(json.dumps(run.gave)) > MAX_GAVE_BYTES:
            run.gave = None
            raise RuntimeError("Your function gave back more than 4 MiB; give back only what is asked.")
        self.close()


def allow(args: list[Any]) -> None:
    """The program allows TF32 in products, convolutions and recurrent layers, or doesn't."""
    if len(args) != 3 or any(a not in ("none", "ieee", "tf32", "bf16") for a in args):
        raise foul("a precision that there isn't")
    for owner, precision in zip(PRECISIONS, args, strict=True):
        owner.fp32_precision = precision
