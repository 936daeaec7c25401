"""Data sets by name, and what the real scripts say of a folder here."""

from orchestrator.datasets import DATASETS, Dataset

NAMES = ("dali_idx", "gpt", "imagenet", "imagenet_ofrecord", "imagenet_tfrecord", "wiki_ofrecord")


def known(name: str) -> Dataset:
    """A shipped data set."""
    return DATASETS[name]


def sizes(*names: str, each: int = 9) -> dict[str, int]:
    """Files of these names."""
    return dict.fromkeys(names, each)
