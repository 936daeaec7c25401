"""ImageNet's training images as OFRecord files, which OneFlow reads."""

import re

from orchestrator.datasets import SOURCE, TARGET, Dataset, Need, Shards, Tool, Way, ready

TRAIN = Shards("train", "part-", 5, 256)
IMAGENET, BOXES = "/data/imagenet", "imagenet_2012_bounding_boxes.csv"
_FOUND = re.compile(r"^Found ([0-9]+) JPEG files across ", re.MULTILINE)
_WROTE = re.compile(r"\]: Wrote ([0-9]+) images to \S*part-[0-9]+$", re.MULTILINE)


def _problem(log: str) -> str:
    """The program passes over images that it cannot read, and threads that fail, with status 0."""
    listed, wrote = _FOUND.search(log), sum(map(int, _WROTE.findall(log)))
    if listed is None or int(listed[1]) == 0:
        return "it names no image that it found"
    return "" if wrote == int(listed[1]) else f"it wrote {wrote} of {listed[1]} images"


DATASET = Dataset(
    name="imagenet_ofrecord",
    title="ImageNet, OFRecord",
    parts=(TRAIN,),
    ways=(
        ready(TRAIN),
        Way(
            title="runs OneFlow-Benchmark's imagenet_ofrecord.py in a container",
            script="tool.sh",
            needs=(Need(BOXES.replace(".", "[.]")),),
            after="imagenet",
            after_at=IMAGENET,
            share=2.0,  # it encodes every image anew, at a quality of its own
            tool=Tool(
                image="oneflow-0.1.9",
                program="imagenet_ofrecord.py",
                places=(
                    "{code}/Classification/cnns/tools",
                    "{code}/cnns/tools",
                    "{code}/tools",
                ),
                # Source: OneFlow-Benchmark, Classification/cnns/tools/README.md.
                argv=(
                    *("python3", "imagenet_ofrecord.py"),
                    *("--train_directory", f"{IMAGENET}/train"),
                    *("--output_directory", f"{TARGET}/train"),
                    *("--label_file", "imagenet_lsvrc_2015_synsets.txt"),
                    *("--shards", "256", "--num_threads", "8", "--name", "train"),
                    *("--bounding_box_file", f"{SOURCE}/{BOXES}"),
                    *("--height", "224", "--width", "224"),
                ),
                gpus=True,
                total=256,
                problem=_problem,
            ),
        ),
    ),
)
