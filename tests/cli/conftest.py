"""Fixtures of all tests of the command line."""

from tests.cli.here import bare as bare
from tests.cli.here import here as here
