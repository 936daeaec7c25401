"""Stub of torch for the stand-in image: device counts, and real rendezvous over TCP."""

from . import cuda, distributed

__all__ = ["cuda", "distributed"]
__version__ = "1.5.0a0+8f84ded"
