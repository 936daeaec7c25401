"""Tests of readers of logs."""
