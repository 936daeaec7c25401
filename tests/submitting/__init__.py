"""Tests of commands that submit themselves."""
