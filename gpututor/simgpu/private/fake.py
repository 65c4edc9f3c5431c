"""Torch's fake tensors, against which `gpututor bench` holds its speed. Importing them takes a second."""

from __future__ import annotations

from gpututor.simgpu.private.needing import need

FakeTensorMode = need(
    "torch._subclasses.fake_tensor.FakeTensorMode",
    "comparing our speed with torch's own way to follow shapes",
    "gpututor bench has nothing to compare with",
)
