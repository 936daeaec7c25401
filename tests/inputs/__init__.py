"""Tests of what commands begin with."""
