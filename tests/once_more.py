"""Tests that failed beside others, run once more: alone, one after another, each by its name.

Neighbours take both processors for seconds. What fails again is wrong; so is more than a handful.
"""

import json
import sys
from pathlib import Path

import pytest

MOST = 5


def main(cache: Path = Path(".pytest_cache")) -> int:
    """Run what the last session kept as failed; its exit code, or 1 if too much has failed."""
    failed = sorted(json.loads((cache / "v" / "cache" / "lastfailed").read_text()))
    if not 0 < len(failed) <= MOST:
        print(f"{len(failed)} tests failed; at most {MOST} are run once more, alone")  # noqa: T201 # for whoever reads CI's output
        return 1
    print("failed beside others, once more alone:", *failed, sep="\n  ")  # noqa: T201 # likewise
    return int(pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", *failed]))


if __name__ == "__main__":
    sys.exit(main())
