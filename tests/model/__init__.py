"""Tests of nouns and records."""
