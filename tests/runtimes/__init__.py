"""Tests of what tasks run as."""
