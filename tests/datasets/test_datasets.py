"""Data sets as records, their labels, and what nodes say of them."""

import subprocess
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.datasets import (
    DATASETS,
    Classes,
    Dataset,
    NamedFiles,
    Shards,
    contents,
    look,
)
from orchestrator.datasets.contents import COUNTS, Contents
from tests.datasets.shipped import NAMES, known
from tests.small_sets import CLASSES, jpeg, parts, tfrecords, valprep


def ask(dataset: Dataset, path: Path) -> Contents:
    """What the real script says of a folder here."""
    question = contents.probe(dataset, str(path))
    done = subprocess.run(question.argv, capture_output=True, text=True, timeout=60, check=True)
    return question.parse(done.stdout)


def test_every_data_set_of_the_benchmarks_is_there() -> None:
    """In the order of their names."""
    assert tuple(DATASETS) == NAMES


def test_records_hold_the_numbers_of_the_published_sets() -> None:
    """ImageNet as its readers count it; shards as upstream's commands and names say."""
    train, val = known("imagenet").parts
    assert train == Classes("train", 1000, 1_281_167)
    assert val == Classes("val", 1000, 50_000, optional=True)
    tf_train, tf_val = known("imagenet_tfrecord").parts
    assert isinstance(tf_train, Shards)
    assert isinstance(tf_val, Shards)
    assert tf_train.name(0, tf_train.count) == "train-00000-of-01024"
    assert tf_val.name(127, tf_val.count) == "validation-00127-of-00128"
    (of_rn50,) = known("imagenet_ofrecord").parts
    (of_bert,) = known("wiki_ofrecord").parts
    assert isinstance(of_rn50, Shards)
    assert isinstance(of_bert, Shards)
    assert (of_rn50.folder, of_rn50.name(255, 256), of_rn50.count) == ("train", "part-00255", 256)
    assert (of_bert.name(31, 32), of_bert.count) == ("part-31", 32)


def test_valprep_and_a_list_by_order_say_the_same() -> None:
    """Both forms in which the classes of validation images are passed around."""
    first = "ILSVRC2012_val_00000001.JPEG"
    moved = look.parse_labels(valprep(CLASSES, 4), "valprep.sh")
    listed = look.parse_labels("n01440764\nn01443537\nn01484850\n\nn01440764\n", "labels.txt")
    assert moved == listed
    assert len(moved.splitlines()) == 4
    assert moved.decode().splitlines()[0] == f"{first} n01440764"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "nothing in it; needed lines"),
        ("490\n361\n", r"x:1: '490'; needed lines `mv ILSVRC2012_val_00000293.JPEG n01440764/`"),
        ("n01440764\nn0144\n", r"x:2: 'n0144'"),
        ("n01440764\n; rm -rf /\n", r"x:2: '; rm -rf /'"),
        ("mv ILSVRC2012_val_00000293.JPEG ../n01440764/\n", r"x:1: 'mv ILS"),
        (
            "mv ILSVRC2012_val_00000293.JPEG n01440764/\n"
            "mv ILSVRC2012_val_00000293.JPEG n01443537/\n",
            r"x:2: ILSVRC2012_val_00000293.JPEG is of n01440764 and of n01443537",
        ),
    ],
)
def test_labels_that_are_not_understood_are_refused(text: str, match: str) -> None:
    """The devkit's numbers are no classes by themselves; nothing is guessed."""
    with pytest.raises(errors.LogError, match=match) as raised:
        look.parse_labels(text, "x")
    assert raised.value.code == "LABELS"


def test_classes_are_counted(tmp_path: Path) -> None:
    """Folders, files, and what is neither; links are followed."""
    for name in CLASSES:
        (tmp_path / "set/train" / name).mkdir(parents=True)
    one = tmp_path / "set/train" / CLASSES[0]
    (one / "a b.JPEG").write_bytes(jpeg(1))
    (one / "empty.JPEG").write_bytes(b"")
    (tmp_path / "set/train/readme").write_text("x")
    (tmp_path / "set/train" / CLASSES[1] / "link.JPEG").symlink_to(one / "a b.JPEG")
    (tmp_path / "set/train" / CLASSES[1] / "dead.JPEG").symlink_to("nowhere")
    train, val = ask(known("imagenet"), tmp_path / "set")
    assert train == dict(zip(COUNTS, (3, 3, 1, 1, 2), strict=True))
    assert val == dict.fromkeys(COUNTS, 0)


def test_files_are_listed_with_their_sizes(tmp_path: Path) -> None:
    """Whatever else lies there is told from files."""
    tfrecords(tmp_path / "tf", train=2, validation=1)
    (tmp_path / "tf" / "more").mkdir()
    train, val = ask(known("imagenet_tfrecord"), tmp_path / "tf")
    assert train == {
        "train-00000-of-00002": 1000,
        "train-00001-of-00002": 1001,
        "validation-00000-of-00001": 1000,
    }
    assert val == train


def test_a_folder_that_is_not_there_has_no_file(tmp_path: Path) -> None:
    """Missing parts are the verdict's business; a missing data set is an error."""
    (tmp_path / "of").mkdir()
    assert ask(known("imagenet_ofrecord"), tmp_path / "of") == ({},)
    with pytest.raises(errors.LogError, match="none: missing; needed ImageNet, OFRecord"):
        ask(known("imagenet_ofrecord"), tmp_path / "none")
    (tmp_path / "file").write_text("x")
    with pytest.raises(errors.LogError, match="no folder"):
        ask(known("imagenet_ofrecord"), tmp_path / "file")


def test_a_folder_of_too_many_names_is_no_set_of_shards(tmp_path: Path) -> None:
    """Nobody wants a million names on the wire."""
    parts(tmp_path / "of/train", 5, digits=5)
    question = contents.probe(known("imagenet_ofrecord"), str(tmp_path / "of"))
    argv = tuple("4" if word == str(contents.MOST_NAMES) else word for word in question.argv)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    with pytest.raises(errors.LogError, match="5 names in one folder"):
        question.parse(done.stdout)


@pytest.mark.parametrize("text", ["", "classes 0 1 1 0 0 0\n", "problem unreadable\nend\n"])
def test_an_answer_that_is_cut_is_refused(text: str) -> None:
    """A count that did not come is not zero."""
    with pytest.raises(errors.LogError, match=r"not whole|unreadable") as raised:
        contents.parse(text, known("imagenet"), "/data/image")
    assert raised.value.code == ("DATA-MISSING" if "problem" in text else "DATA-DIFF")


def test_a_named_file_is_matched_as_it_is() -> None:
    """A dot is a dot."""
    assert NamedFiles("", ("a.bin", "a.idx")).pattern == "a[.]bin|a[.]idx"
