"""Doctored logs: what a log reader must never believe, and what it must never accuse.

``honest`` holds recorded logs and a small reader of its own; ``doctors`` change a log so that the
true throughput is known; ``judge`` runs the real command line on it.
"""
