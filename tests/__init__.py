"""Tests: text in, value out; real parts, no mocks. The folders are those of the program's rooms."""

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
SAMPLES = TESTS / "samples"
