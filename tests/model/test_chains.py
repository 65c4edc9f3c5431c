"""Many kernels of one op at once end when they end one after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpututor.model.chains import LONG
from gpututor.model.priced import PricedOp
from gpututor.model.queue import Queue
from gpututor.timeline import KernelWork

WORK = KernelWork("stream", n_blocks=1)


def op_of(lengths_ns, before_ns):
    return PricedOp("many", 0, 0, before_ns * (len(lengths_ns) + 1), 3, tuple(("k", n, WORK) for n in lengths_ns))


long_ops = st.builds(op_of, st.lists(st.integers(1, 20_000), min_size=LONG, max_size=3 * LONG), st.integers(0, 10_000))


@given(st.lists(long_ops, min_size=1, max_size=120))
def test_clocks_without_spans_are_those_with_them(ops):
    seen, unseen = Queue(0, []), Queue(0)
    for op in ops:
        seen.op(op)
        unseen.op(op)
        assert (unseen.host_ns, unseen.stream_ns, unseen.n_launches, unseen.summed_kernel_ns) == (
            seen.host_ns,
            seen.stream_ns,
            seen.n_launches,
            seen.summed_kernel_ns,
        )


@given(long_ops)
def test_a_full_launch_queue_holds_the_host_in_a_chain_too(op):
    slow = op_of([1_000_000] * LONG, 1)
    seen, unseen = Queue(0, []), Queue(0)
    for one in [slow] * (1024 // LONG + 5) + [op] * 3:
        seen.op(one)
        unseen.op(one)
    assert (unseen.host_ns, unseen.stream_ns) == (seen.host_ns, seen.stream_ns)
