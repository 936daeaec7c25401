"""Tests of files at the edge."""
