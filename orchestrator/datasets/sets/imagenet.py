"""ImageNet of ILSVRC2012 as folders of JPEG files, one a class."""

from orchestrator.datasets import Classes, Dataset, Need, Way

DATASET = Dataset(
    name="imagenet",
    title="ImageNet, JPEG files in a folder for each class",
    # As PyTorch's and DALI's readers count the whole set.
    parts=(Classes("train", 1000, 1_281_167), Classes("val", 1000, 50_000, optional=True)),
    ways=(
        Way(
            title="extracts ILSVRC2012's tars, and sorts validation images by class",
            script="imagenet.sh",
            needs=(Need("ILSVRC2012_img_train[.]tar"), Need("ILSVRC2012_img_val[.]tar")),
            labels=True,
        ),
    ),
)
