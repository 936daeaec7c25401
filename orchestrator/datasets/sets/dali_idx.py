"""The index files with which DALI finds records in ImageNet's TFRecord files."""

from orchestrator.datasets import Dataset, Shards, Tool, Way

TRAIN = Shards("", "train-", 5, 1024, with_total=True)
VALIDATION = Shards("", "validation-", 5, 128, with_total=True, optional=True)
INDEX, TFRECORDS, IDX = "utils/dali_index.sh", "/data/tfrecords", "/data/dali_idx"
DATASET = Dataset(
    name="dali_idx",
    title="DALI's index of ImageNet's TFRecord files",
    parts=(TRAIN, VALIDATION),
    like="imagenet_tfrecord",
    ways=(
        # No ready-made files: those of the TFRecords have the same names.
        Way(
            title="runs NVIDIA's dali_index.sh in a container",
            script="tool.sh",
            after="imagenet_tfrecord",
            after_at=TFRECORDS,
            share=0.01,  # two numbers per record of some 100 kB
            tool=Tool(
                image="ngc-tensorflow-20.03",
                program=INDEX,
                places=("{code}", "{code}/resnet50v1.5"),
                # Source: DLPerf, NVIDIADeepLearningExamples/TensorFlow, README.
                argv=("bash", INDEX, TFRECORDS, IDX),
                target=IDX,
                total=1152,
            ),
        ),
    ),
)
