"""Tests of logs to reports."""
