"""The index files with which DALI finds records in ImageNet's TFRecord files."""

from orchestrator.datasets import Dataset, ready
from orchestrator.datasets.sets.imagenet_tfrecord import TRAIN, VALIDATION

DATASET = Dataset(
    name="dali_idx",
    title="DALI's index of ImageNet's TFRecord files",
    parts=(TRAIN, VALIDATION),
    ways=(ready(TRAIN, VALIDATION),),
)
