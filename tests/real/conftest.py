"""Upstream's real programs are run where they are asked for: with ``-m real``."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the real programs out, unless the marks that were asked for name them."""
    if "real" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("real")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
