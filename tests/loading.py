"""What a command loads, as Python itself tells it."""

import re

_LINE = re.compile(r"import time: +\d+ \| +\d+ \| +(\S+)")
TELL = {"PYTHONPROFILEIMPORTTIME": "1"}


def loaded(stderr: str) -> frozenset[str]:
    """Names of all modules that a command loaded, whose environment had ``TELL``."""
    return frozenset(_LINE.findall(stderr))
