"""Tests of the program on the virtual cluster."""
