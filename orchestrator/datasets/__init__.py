"""Data sets: what each must hold, and how it comes onto a node.

``DATASETS`` has them by name, which inventories use under ``data:``. ``contents`` asks a node what
it has and judges it, ``look`` what it could be prepared from. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Classes:
    """A folder that holds one folder of files per class.

    Args:
        folder: below the data set's own.
        folders, files: of the whole set; another number is a warning, since programs can read
            part of it.
        optional: whether training does without.
    """

    folder: str
    folders: int
    files: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Shards:
    """Numbered files of one folder, beginning with 0.

    Args:
        folder: below the data set's own; empty for that itself.
        stem: what their names begin with.
        digits: of a number with leading zeros; 0 for numbers without.
        count: of the whole set; another number is a warning.
        with_total: whether each name ends in ``-of-`` and the number of all.
    """

    folder: str
    stem: str
    digits: int
    count: int
    with_total: bool = False
    optional: bool = False

    @property
    def pattern(self) -> str:
        """Return a regular expression for whole names, common to Python, find and awk."""
        number = f"[0-9]{{{self.digits}}}" if self.digits else "(0|[1-9][0-9]*)"
        return f"{self.stem}{number}" + (f"-of-{number}" if self.with_total else "")

    def name(self, number: int, total: int) -> str:
        """Return the name of a file, by its number from 0 and the number of all files."""
        shown = f"{self.stem}{number:0{self.digits}}"
        return f"{shown}-of-{total:0{self.digits}}" if self.with_total else shown


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Files of one folder with fixed names."""

    folder: str
    names: tuple[str, ...]
    optional: bool = False

    @property
    def pattern(self) -> str:
        """Return a regular expression that matches these names only."""
        return "|".join(name.replace(".", "[.]") for name in self.names)


Part = Classes | Shards | NamedFiles


@dataclass(frozen=True, slots=True)
class Need:
    """Files that must lie in the folder of sources.

    Args:
        pattern: of whole names, as find knows it.
        many: any number of files, there or one folder deeper; else one, right there.
        least: how many there must be.
    """

    pattern: str
    many: bool = False
    least: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to prepare a data set on a node; the first whose needs are met is taken.

    Args:
        title: what is done, in words.
        script: a file of this package, run on the node with the folder that is being filled, the
            folder of sources, and ``words``.
        needs: in the folder that the user names.
        labels: whether it needs to be told the classes of validation images.
        links: whether nothing is written where source and target share a file system.
        share: bytes that come out per byte of the sources, generously.
    """

    title: str
    script: str
    needs: tuple[Need, ...]
    words: tuple[str, ...] = ()
    labels: bool = False
    links: bool = False
    share: float = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One data set."""

    name: str
    title: str
    parts: tuple[Part, ...]
    ways: tuple[Way, ...]


def ready(*parts: Shards | NamedFiles) -> Way:
    """Return the way for ready-made files, which are linked or copied into place."""
    words = tuple(word for part in parts for word in (part.folder, part.pattern))
    needs = tuple(
        Need(part.pattern, many=True, least=len(part.names) if isinstance(part, NamedFiles) else 1)
        for part in parts
        if not part.optional
    )
    return Way(
        title="puts ready-made files into their place (hard links, or copies that are compared)",
        script="place.sh",
        needs=needs,
        words=words,
        links=True,
    )


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
"""The data sets by name; a new one is a new entry."""
