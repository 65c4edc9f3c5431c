"""The card as a process: serves one learner's process over a socket, then tells the judge what was launched.

It never sees the learner's code. Its own memory, processor time and life are limited, since the learner decides what it
computes. A server that has imported torch already forks one such process a run; `cards_pool` starts it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from typing import Any

MIB = 1 << 20
BEYOND = "your code had the card compute longer, or hold more, than it may"


def keep_limits(memory_mb: int, cpu_s: int, wall_s: int) -> None:
    """Let the system end this process when it computes too long or takes too much memory."""
    import resource

    for what, most in (
        (resource.RLIMIT_DATA, memory_mb * MIB),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        try:
            resource.setrlimit(what, (most, most))
        except (ValueError, OSError):  # a lower limit is in force already
            continue
    signal.alarm(wall_s)


def serve(sock: socket.socket, judge: socket.socket) -> None:
    """Serve the card at `sock`, on terms that come from `judge`, and give the judge what became of it."""
    from gpututor.simgpu.remote import wire
    from gpututor.simgpu.remote.card import Card
    from gpututor.simgpu.remote.terms import Terms

    frame = wire.receive(judge)
    if frame is None:
        return
    told = json.loads(frame[0])
    keep_limits(told["memory_mb"], told["cpu_s"], told["wall_s"])
    placed = tuple((where, tuple(args)) for where, args in told["placed"])
    card = Card(sock, Terms(told["n_runs"], placed, told["judged"], told["reads_before"], told["n_ops"]))
    sentence = None
    try:
        card.serve()
    except wire.Foul as fault:
        sentence = str(fault)
    except MemoryError:
        sentence = BEYOND
    finally:
        sock.close()
    runs: list[dict[str, Any]] = []
    tapes: list[bytes] = []
    for run in card.ran:
        runs.append(
            {
                "machine": run.machine,
                "gave": run.gave,
                "received_bytes": run.received_bytes,
                "over": run.over,
                "n": len(run.tape),
            }
        )
        tapes.append(run.tape)
    wire.send(judge, json.dumps({"sentence": sentence, "runs": runs}).encode(), tapes)


def practise() -> None:
    """Use the card a little, so that what torch and the cost model load at first use is there before anybody waits.

    No backward pass: autograd's engine has threads from then on, and refuses to work in a forked process.
    """
    import torch
    from torch import nn

    from gpututor.simgpu import simulated_gpu

    with simulated_gpu():
        words = torch.zeros(2, 3, dtype=torch.int64, device="simgpu")
        cell, top = nn.LSTM(4, 4, batch_first=True).to("simgpu"), nn.Linear(4, 5).to("simgpu")
        table = nn.Embedding(5, 4).to("simgpu")
        weights = [*cell.parameters(), *top.parameters(), *table.parameters()]
        scores = nn.functional.dropout(top(cell(table(words))[0]), 0.1).flatten(0, 1)
        nn.functional.cross_entropy(scores, words.flatten()).item()
        for weight in weights:
            weight.grad = torch.zeros_like(weight)
        for optimizer in (torch.optim.SGD(weights, lr=0.1), torch.optim.AdamW(weights)):
            optimizer.step()


def wait_for_work(orders: socket.socket) -> None:
    """Fork a card process for each pair of sockets that comes in, until the other side closes."""
    import torch

    import gpututor.simgpu.remote.card  # noqa: F401  # imported once, here, for all that are forked
    from gpututor.simgpu import register

    torch.set_num_threads(1)
    register()
    practise()
    gc.collect()
    gc.freeze()  # forked processes share what is there, and leave it alone
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    orders.sendall(b"r")  # ready
    while True:
        order, fds, _, _ = socket.recv_fds(orders, 1, 2)
        if not order:
            return
        if os.fork() == 0:
            status = 1
            try:
                orders.close()
                serve(socket.socket(fileno=fds[0]), socket.socket(fileno=fds[1]))
                status = 0
            finally:
                os._exit(status)
        for fd in fds:
            os.close(fd)


def main() -> None:
    """Wait for work at the socket whose descriptor is the first argument."""
    wait_for_work(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
