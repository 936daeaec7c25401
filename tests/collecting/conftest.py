"""Folders of logs that tests of `collect` share."""

from pathlib import Path

import pytest

from tests.collecting.pytorch_logs import PUBLISHED, keep


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Write the logs behind the AMP table of seed 003, named and placed as DLPerf's scripts do."""
    for place, rates in PUBLISHED.items():
        precision = place.partition("_")[0]
        keep(tmp_path, f"{place}/r50_b256_{precision}", dict(enumerate(rates, 1)))
    return tmp_path


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """Write the five published trials on 8 GPUs alone."""
    keep(tmp_path, "1n8g/r50_b256_amp", dict(enumerate(PUBLISHED["fp16_ngc/pytorch/1n8g"], 1)))
    return tmp_path
