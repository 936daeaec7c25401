"""Tests: text in, value out; real parts, no mocks."""
