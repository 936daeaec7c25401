"""ImageNet's training images as OFRecord files, which OneFlow reads."""

from orchestrator.datasets import Dataset, Shards, ready

TRAIN = Shards("train", "part-", 5, 256)
DATASET = Dataset(
    name="imagenet_ofrecord",
    title="ImageNet, OFRecord",
    parts=(TRAIN,),
    ways=(ready(TRAIN),),
)
