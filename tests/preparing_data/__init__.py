"""Tests of bringing data sets onto nodes."""
