"""Tests of the state folder."""
