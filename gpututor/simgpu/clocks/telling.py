"""A paced run tells others how it goes: a thread that writes its counters where `gpututor watch` looks for them.

The simulated host runs ahead of its card, so what was launched is not yet done. `BusyTime` says how much of it was
done by a given moment.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from gpututor.live import LiveCard, LiveRun, publish, withdraw

if TYPE_CHECKING:
    from gpututor.simgpu.clocks.paced import PacedClock

TELL_EVERY_S = 0.2
"""Our choice: a reader looks once a second, and five readings in it keep the blur below a fifth."""


class BusyTime:
    """Nanoseconds with a kernel running on one card, read from two sums now and then.

    Exact at the moments when everything launched so far is done. In between, kernels of one look are spread evenly
    from the look before (or the end of earlier kernels) to their own end, so a wrong guess is put right at the next.
    """

    def __init__(self) -> None:
        self._pieces: deque[tuple[int, int, int]] = deque()  # begin, end, busy between them
        self._done_ns = self._summed_ns = self._ends_ns = self._looked_ns = 0

    def look(self, now_ns: int, ends_ns: int, summed_ns: int) -> int:
        """Busy nanoseconds until `now_ns`; all kernels launched so far take `summed_ns` and end at `ends_ns`."""
        if summed_ns > self._summed_ns:
            begin = max(self._ends_ns, self._looked_ns)
            end = max(ends_ns, begin)
            self._pieces.append((begin, end, min(summed_ns - self._summed_ns, end - begin)))
            self._summed_ns, self._ends_ns = summed_ns, end
        self._looked_ns = max(self._looked_ns, now_ns)
        while self._pieces and self._pieces[0][1] <= now_ns:
            self._done_ns += self._pieces.popleft()[2]
        return self._done_ns + sum(
            busy * (now_ns - begin) // (end - begin) for begin, end, busy in self._pieces if begin < now_ns
        )


class Teller:
    """The thread that publishes one session, from the first `TELL_EVERY_S` on until `stop`."""

    def __init__(self, clock: PacedClock) -> None:
        self._clock = clock
        self._busy = [BusyTime() for _ in clock.session.memories]
        self._over = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._go_on, name="gpututor-live", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # a session that lasts as long as its process is never left

    def stop(self) -> None:
        """Publish no more and take the file away. In a forked process, which has no such thread, nothing happens."""
        if os.getpid() != self._pid:
            return
        atexit.unregister(self.stop)
        self._over.set()
        self._thread.join(timeout=2)
        withdraw()

    def state(self) -> LiveRun:
        """The run at this moment."""
        session = self._clock.session
        queue, now_ns = session.player.queue, self._clock.now_ns()
        cards = []
        for k, memory in enumerate(session.memories):
            ends_ns = max(
                end for end, card in zip(list(queue.stream_ns), list(queue.stream_card), strict=False) if card == k
            )
            busy_ns = self._busy[k].look(now_ns, ends_ns, queue.kernel_ns[k])
            used_bytes = memory.outside_bytes + memory.reserved_bytes
            cards.append(LiveCard(memory.card_name, busy_ns, used_bytes, memory.capacity_bytes))
        n_steps = max(len(session.player.begins), session.n_steps_seen)
        return LiveRun(self._pid, session.tape.what, session.machine.name, now_ns, n_steps, time.time(), tuple(cards))

    def _go_on(self) -> None:
        while not self._over.wait(TELL_EVERY_S):
            try:
                publish(self.state())
            except OSError:  # a full disk ends nobody's run; perhaps there is room the next time
                continue
