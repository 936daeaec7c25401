"""Fixtures of all tests of commands."""

from tests.cli.here import bare as bare
from tests.cli.here import here as here
