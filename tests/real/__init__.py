"""Upstream's real programs, run on CPUs: opt-in, by `make real`."""
