"""Tests of training programs."""
