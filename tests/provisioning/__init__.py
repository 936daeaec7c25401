"""Tests of making nodes ready."""
