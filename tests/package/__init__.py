"""Tests of the package as a whole, and its modules that live in no room."""
