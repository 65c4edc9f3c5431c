"""Traces that somebody recorded, read into a `Timeline`."""

from gpututor.trace.kineto import read

__all__ = ["read"]
