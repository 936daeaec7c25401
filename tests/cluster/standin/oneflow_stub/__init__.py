"""Stub of OneFlow for its stand-in wheels: a real gang of processes that computes nothing."""

from . import gang

__all__ = ["gang"]
__version__ = "@VERSION@"  # the testbed writes that of the wheel here
