"""The data sets by name; a new one is a new entry."""

from collections.abc import Mapping

from orchestrator.datasets import Classes, Dataset, NamedFiles, Need, Shards, Way, ready

_GPT = NamedFiles(
    "", ("gpt_sample_dataset_text_document.bin", "gpt_sample_dataset_text_document.idx")
)
_OFRECORD = Shards("train", "part-", 5, 256)
# No benchmark brings a converter: DLPerf says how many files there must be, and no more.
_TFRECORD = (
    Shards("", "train-", 5, 1024, with_total=True),
    Shards("", "validation-", 5, 128, with_total=True, optional=True),
)
# BERT's reader asks for part-0 and not for part-00000: it gives no length of the number.
_WIKI = Shards("", "part-", 0, 32)
_ALL = (
    Dataset(
        name="dali_idx",
        title="DALI's index of ImageNet's TFRecord files",
        parts=_TFRECORD,
        ways=(ready(*_TFRECORD),),
    ),
    Dataset(
        name="gpt",
        title="OpenWebText for GPT, Megatron's indexed files",
        parts=(_GPT,),
        ways=(ready(_GPT),),
    ),
    Dataset(
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
    ),
    Dataset(
        name="imagenet_ofrecord",
        title="ImageNet, OFRecord",
        parts=(_OFRECORD,),
        ways=(ready(_OFRECORD),),
    ),
    Dataset(
        name="imagenet_tfrecord",
        title="ImageNet, TFRecord",
        parts=_TFRECORD,
        ways=(ready(*_TFRECORD),),
    ),
    Dataset(
        name="wiki_ofrecord",
        title="Wikipedia for BERT, OFRecord",
        parts=(_WIKI,),
        ways=(
            ready(_WIKI),
            Way(
                title="unpacks the sample of one part",
                script="unpack.sh",
                needs=(Need("wiki_ofrecord_seq_len_128_example[.]tgz"),),
                words=("wiki_ofrecord_seq_len_128_example.tgz", _WIKI.pattern),
                share=20.0,  # compressed, by how much nobody says
            ),
        ),
    ),
)
DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
