"""Tests of running a sweep."""
