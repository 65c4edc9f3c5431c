"""What each host thread did at every instant, as far as idle time of the GPU is charged by it.

On a thread the innermost span decides, with two exceptions. A pause or start-up owns all that
happens inside, because without it none of that would happen. Python and framework work inside `INPUT` is
part of preparing the batch. Between two framework calls lies the interpreter, which many traces don't show: gaps
up to `LONGEST_PYTHON_NS` are its time, longer ones unknown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from gpututor.ledger.accounts import Account
from gpututor.timeline import Activity, Span

LONGEST_PYTHON_NS = 1_000_000
"""Our choice. A training loop's own Python between two calls takes microseconds; a millisecond deserves a name."""

ACCOUNT_OF = {
    Activity.INPUT: Account.WAITING_FOR_INPUT,
    Activity.SYNC: Account.BLOCKING_SYNC,
    Activity.COPY_CALL: Account.EXPOSED_COPY,
    Activity.PYTHON: Account.LAUNCH_OVERHEAD,
    Activity.DISPATCH: Account.LAUNCH_OVERHEAD,
    Activity.LAUNCH: Account.LAUNCH_OVERHEAD,
    Activity.PAUSE: Account.PAUSE,
    Activity.STARTUP: Account.START_UP,
    Activity.COMM_WAIT: Account.EXPOSED_COMMUNICATION,
}
OWNS_ALL_INSIDE = (Activity.STARTUP, Activity.PAUSE)
WORKS_FOR_INPUT = frozenset({Activity.PYTHON, Activity.DISPATCH})


@dataclass(slots=True)
class Thread:
    """One host thread: from `starts[k]` on its time belongs to `accounts[k]`, None where nothing is known."""

    starts: list[int] = field(default_factory=list)
    accounts: list[Account | None] = field(default_factory=list)

    def turn(self, when_ns: int, account: Account | None) -> None:
        """From here on it is this account; times don't go back, and of several at one instant the last counts."""
        if self.starts and self.starts[-1] == when_ns:
            self.accounts[-1] = account
        elif (self.accounts[-1] if self.accounts else None) is not account:
            self.starts.append(when_ns)
            self.accounts.append(account)


def thread_of(spans: Sequence[Span], to_host: AbstractSet[int | None]) -> Thread:
    """The step function of one thread, from its spans by start, the longer first where two start together.

    `to_host` are launch numbers of copies to the host: a blocking one is a wait for the result, like any other sync.
    """
    return calls_in_calls(spans, to_host) or edge_by_edge(spans, to_host)


@dataclass(slots=True)
class _Inside:
    """Inside of what a thread is, and what each activity then means: its account, and what it is inside of it.

    The account of a copy call is None here, since it hangs on the copy.
    """

    owner: Activity | None
    for_input: bool
    means: dict[Activity, tuple[Account | None, _Inside]] = field(default_factory=dict)


def _insides() -> Mapping[tuple[Activity | None, bool], _Inside]:
    found = {(owner, b): _Inside(owner, b) for owner in (None, *OWNS_ALL_INSIDE) for b in (False, True)}
    for (owner, for_input), inside in found.items():
        for activity, account in ACCOUNT_OF.items():
            owns = activity in OWNS_ALL_INSIDE and owner is not OWNS_ALL_INSIDE[0]
            now, fed = activity if owns else owner, for_input or activity is Activity.INPUT
            charged: Account | None = account
            if now is not None:
                charged = ACCOUNT_OF[now]
            elif fed and activity in WORKS_FOR_INPUT:
                charged = Account.WAITING_FOR_INPUT
            elif activity is Activity.COPY_CALL:
                charged = None
            inside.means[activity] = charged, found[now, fed]
    return found


OUTSIDE = _insides()[None, False]


def calls_in_calls(spans: Sequence[Span], to_host: AbstractSet[int | None]) -> Thread | None:
    """Where each span lies wholly in those that it begins in, as calls do; None where one does not."""
    thread = Thread()
    turn = thread.turn
    ends: list[int] = []  # of what is open; with the account before it, and what it is inside of
    around: list[tuple[Account | None, _Inside]] = []
    now: Account | None = None
    inside, last = OUTSIDE, None
    for span in spans:
        start, end, activity = span.start_ns, span.end_ns, span.activity
        while ends and ends[-1] <= start:
            over, was = ends.pop(), now
            now, inside = around.pop()
            if now is not was:
                turn(over, now)
        if not ends:
            if last is not None and activity is last.activity is Activity.DISPATCH:
                _between(thread, last.end_ns, start)
            last = span
        elif end > ends[-1]:
            return None
        ends.append(end)
        around.append((now, inside))
        account, inside = inside.means[activity]
        if account is None:
            account = _account(span, to_host)
        if account is not now:
            turn(start, account)
            now = account
    while ends:
        over, (now, _) = ends.pop(), around.pop()
        turn(over, now)
    return thread


def _between(thread: Thread, start_ns: int, end_ns: int) -> None:
    """A short gap from one framework call, which ended last, to the next is Python's."""
    if 0 < end_ns - start_ns <= LONGEST_PYTHON_NS and thread.starts[-1] == start_ns:
        thread.accounts[-1] = Account.LAUNCH_OVERHEAD


def edge_by_edge(spans: Sequence[Span], to_host: AbstractSet[int | None]) -> Thread:
    """The same where spans of one thread cross each other."""
    thread = Thread()
    for when, account in _deciding_at(spans, to_host):
        thread.turn(when, account)
    for start, end in _between_framework_calls(spans):
        k = bisect_left(thread.starts, start)
        if thread.starts[k : k + 2] == [start, end] and thread.accounts[k] is None:
            thread.accounts[k] = Account.LAUNCH_OVERHEAD
    return thread


def _between_framework_calls(spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Short gaps with a framework call before and after, from spans sorted by start."""
    before: Span | None = None  # the one that reaches furthest
    for span in spans:
        calls = before is not None and before.activity is span.activity is Activity.DISPATCH
        if before is not None and calls and 0 < span.start_ns - before.end_ns <= LONGEST_PYTHON_NS:
            yield before.end_ns, span.start_ns
        if before is None or span.end_ns > before.end_ns:
            before = span


def _deciding_at(spans: Sequence[Span], to_host: AbstractSet[int | None]) -> Iterable[tuple[int, Account | None]]:
    """The deciding account after each begin and end."""
    n = len(spans)
    # sorted by time, ends before begins: an end is k, a begin n + k
    edges = [(s.end_ns, k) for k, s in enumerate(spans)] + [(s.start_ns, n + k) for k, s in enumerate(spans)]
    edges.sort()
    n_open = dict.fromkeys(Activity, 0)
    stack: list[Span] = []  # by start; those that ended stay until nothing lies on top of them
    for when, k in edges:
        begins = k >= n
        span = spans[k - n] if begins else spans[k]
        n_open[span.activity] += 1 if begins else -1
        if begins:
            stack.append(span)
        while stack and stack[-1].end_ns <= when:
            stack.pop()
        yield when, _deciding(stack, n_open, to_host)


def _deciding(stack: Sequence[Span], n_open: dict[Activity, int], to_host: AbstractSet[int | None]) -> Account | None:
    for owner in OWNS_ALL_INSIDE:
        if n_open[owner]:
            return ACCOUNT_OF[owner]
    if not stack:
        return None
    if stack[-1].activity in WORKS_FOR_INPUT and n_open[Activity.INPUT]:
        return Account.WAITING_FOR_INPUT
    return _account(stack[-1], to_host)


def _account(span: Span, to_host: AbstractSet[int | None]) -> Account:
    """A blocking copy to the host is a wait for the result."""
    if span.activity is Activity.COPY_CALL and span.launch is not None and span.launch in to_host:
        return Account.BLOCKING_SYNC
    return ACCOUNT_OF[span.activity]
