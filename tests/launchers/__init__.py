"""Tests of launchers."""
