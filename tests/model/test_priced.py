"""A priced op's parts of the host's time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpututor.model.priced import PricedOp
from gpututor.timeline import KernelWork

NS = st.integers(0, 10**6)


@given(NS, NS, NS, st.integers(0, 9))
def test_parts_around_the_launches_make_up_the_hosts_whole_time(python_ns, dispatch_ns, launch_ns, n):
    op = PricedOp("op", 0, python_ns, dispatch_ns, launch_ns, (("kernel", 1, KernelWork("elementwise")),) * n)

    assert op.before_ns + n * op.each_ns + op.after_ns == python_ns + dispatch_ns + n * launch_ns
