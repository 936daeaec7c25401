"""Tests of ways to nodes."""
