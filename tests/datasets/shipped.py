"""Data sets by name, and what the real scripts say of a folder here."""

from orchestrator import datasets
from orchestrator.datasets import (
    Dataset,
)
from orchestrator.datasets.contents import FilesSeen

NAMES = ("dali_idx", "gpt", "imagenet", "imagenet_ofrecord", "imagenet_tfrecord", "wiki_ofrecord")


def known(name: str) -> Dataset:
    """A shipped data set."""
    found = datasets.find(name)
    assert found is not None
    return found


def sizes(*names: str, each: int = 9) -> FilesSeen:
    """Files of these names."""
    return FilesSeen(dict.fromkeys(names, each))
