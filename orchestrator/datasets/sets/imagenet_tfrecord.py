"""ImageNet as TFRecord files, which NVIDIA's TensorFlow programs read."""

from orchestrator.datasets import Dataset, Shards, ready

TRAIN = Shards("", "train-", 5, 1024, with_total=True)
VALIDATION = Shards("", "validation-", 5, 128, with_total=True, optional=True)
DATASET = Dataset(
    name="imagenet_tfrecord",
    title="ImageNet, TFRecord",
    parts=(TRAIN, VALIDATION),
    # No benchmark brings a converter: DLPerf says how many files there must be, and no more.
    ways=(ready(TRAIN, VALIDATION),),
)
