"""Computes numbers from logs, and decides which of them count. Pure."""
