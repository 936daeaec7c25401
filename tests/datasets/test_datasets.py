"""Data sets, their labels, and the real scripts that look at them and at free paths."""

import subprocess
from pathlib import Path
from typing import TypeVar

import pytest

from orchestrator import errors
from orchestrator.datasets import DATASETS, Classes, Dataset, Need, Shards, Way, contents, look
from orchestrator.datasets.contents import COUNTS, Contents
from orchestrator.datasets.look import Observed
from orchestrator.probes import Probe
from tests.data_sets import CLASSES, jpeg, parts, tfrecords, valprep
from tests.datasets.test_judge import known

T = TypeVar("T")


def ask(probe: Probe[T]) -> T:
    """Run the real script on this machine; return its parsed output."""
    done = subprocess.run(probe.argv, capture_output=True, text=True, timeout=60, check=True)
    return probe.parse(done.stdout)


def listed(name: str, path: Path) -> Contents:
    return ask(contents.probe(known(name), str(path)))


def test_data_sets_have_the_numbers_of_the_published_ones() -> None:
    """ImageNet as its readers count it; shards as upstream's commands and names say."""
    assert tuple(DATASETS) == (
        *("dali_idx", "gpt", "imagenet", "imagenet_ofrecord", "imagenet_tfrecord", "wiki_ofrecord"),
    )
    assert known("imagenet").parts == (
        Classes("train", 1000, 1_281_167),
        Classes("val", 1000, 50_000, optional=True),
    )
    shards = [
        (part.folder, part.count, part.name(part.count - 1, part.count))
        for name in ("imagenet_tfrecord", "imagenet_ofrecord", "wiki_ofrecord")
        for part in known(name).parts
        if isinstance(part, Shards)
    ]
    assert shards == [
        ("", 1024, "train-01023-of-01024"),
        ("", 128, "validation-00127-of-00128"),
        ("train", 256, "part-00255"),
        ("", 32, "part-31"),
    ]


def test_labels_are_read_from_valprep_and_from_a_list_in_order() -> None:
    """The two forms in which the classes of validation images are passed around."""
    moved = look.parse_labels(valprep(CLASSES, 4), "valprep.sh")
    text = "n01440764\nn01443537\nn01484850\n\nn01440764\n"
    assert moved == look.parse_labels(text, "labels.txt")
    lines = moved.decode().splitlines()
    assert (len(lines), lines[0]) == (4, "ILSVRC2012_val_00000001.JPEG n01440764")
    assert valprep(CLASSES, 1).splitlines()[-1] == "mv ILSVRC2012_val_00000001.JPEG n01440764/"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "x:1: ''; needed lines"),
        ("490\n361\n", r"x:1: '490'; needed lines `mv ILSVRC2012_val_00000293.JPEG n01440764/`"),
        ("n01440764\nn0144\n", r"x:2: 'n0144'"),
        ("n01440764\n; rm -rf /\n", r"x:2: '; rm -rf /'"),
        ("mv ILSVRC2012_val_00000293.JPEG ../n01440764/\n", r"x:1: 'mv ILS"),
    ],
)
def test_labels_in_another_form_are_refused(text: str, match: str) -> None:
    """The devkit's numbers are no classes by themselves; nothing is guessed."""
    with pytest.raises(errors.LogError, match=match) as raised:
        look.parse_labels(text, "x")
    assert raised.value.code == "LABELS"


def test_folders_and_files_of_classes_are_counted(tmp_path: Path) -> None:
    """Links are followed; ``odd`` is what is neither."""
    for name in CLASSES:
        (tmp_path / "set/train" / name).mkdir(parents=True)
    one = tmp_path / "set/train" / CLASSES[0]
    (one / "a b.JPEG").write_bytes(jpeg(1))
    (one / "empty.JPEG").write_bytes(b"")
    (tmp_path / "set/train/readme").write_text("x")
    (tmp_path / "set/train" / CLASSES[1] / "link.JPEG").symlink_to(one / "a b.JPEG")
    (tmp_path / "set/train" / CLASSES[1] / "dead.JPEG").symlink_to("nowhere")
    train, val = listed("imagenet", tmp_path / "set")
    assert train == dict(zip(COUNTS, (3, 3, 1, 1, 2), strict=True))
    assert val == dict.fromkeys(COUNTS, 0)


def test_shards_are_listed_with_their_sizes(tmp_path: Path) -> None:
    """Folders beside them are left out; a missing part is an empty list."""
    tfrecords(tmp_path / "tf", train=2, validation=1)
    (tmp_path / "tf" / "more").mkdir()
    train, val = listed("imagenet_tfrecord", tmp_path / "tf")
    assert train == {
        "train-00000-of-00002": 1000,
        "train-00001-of-00002": 1001,
        "validation-00000-of-00001": 1000,
    }
    assert val == train
    assert listed("imagenet_ofrecord", tmp_path / "tf") == ({},)


def test_a_path_without_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name, match in (
        ("none", "none: missing; needed ImageNet, OFRecord"),
        ("file", "no folder"),
    ):
        with pytest.raises(errors.LogError, match=match):
            listed("imagenet_ofrecord", tmp_path / name)


def test_a_folder_with_too_many_names_is_an_error(tmp_path: Path) -> None:
    """A million names would pass through the network."""
    parts(tmp_path / "of/train", 5, digits=5)
    probe = contents.probe(known("imagenet_ofrecord"), str(tmp_path / "of"))
    argv = tuple("4" if word == str(contents.MOST_NAMES) else word for word in probe.argv)
    with pytest.raises(errors.LogError, match="5 names in one folder"):
        ask(Probe(probe.name, argv, probe.parse))


@pytest.mark.parametrize(
    ("text", "code", "match"),
    [
        ("", "DATA-DIFF", "not whole"),
        ("classes 0 1 1 0 0 0\n", "DATA-DIFF", "not whole"),
        ("problem unreadable\nend\n", "DATA-MISSING", "unreadable"),
    ],
)
def test_a_cut_list_of_contents_is_refused(text: str, code: str, match: str) -> None:
    """A count that is missing is not zero."""
    with pytest.raises(errors.LogError, match=match) as raised:
        contents.parse(text, known("imagenet"), "/data/image")
    assert raised.value.code == code


@pytest.mark.parametrize(
    "text",
    [
        *("", "free_kib 1\nattempt 0\n", "free_kib x\nattempt 0\nend\n"),
        "free_kib 1\nattempt 0\nneed 0 1\nend\n",
    ],
)
def test_a_cut_description_of_a_node_is_refused(text: str) -> None:
    """Free space that nobody read is not enough."""
    with pytest.raises(errors.LogError, match="did not say") as raised:
        look.parse(text)
    assert raised.value.code == "DATA-LOOK"


def looked(target: Path, source: Path | None, home: Path) -> Observed:
    """Return what the real script prints about a target for ImageNet on this machine."""
    source_word = str(source) if source else None
    return ask(look.probe(known("imagenet"), str(target), source_word, str(home)))


def test_a_free_path_and_its_sources_are_found(tmp_path: Path) -> None:
    """Sizes of both tars, the file of labels, the last attempt, and free disk space."""
    source = tmp_path / "from"
    source.mkdir()
    (source / "ILSVRC2012_img_train.tar").write_bytes(bytes(3000))
    (source / "ILSVRC2012_img_val.tar").write_bytes(bytes(500))
    (source / "imagenet_2012_validation_synset_labels.txt").write_text("n01440764\n")
    (tmp_path / "home/a2").mkdir(parents=True)
    (tmp_path / "home/a10").mkdir()
    seen = looked(tmp_path / "deep/er/image", source, tmp_path / "home")
    assert (seen.target, seen.partial) == ("missing", None)
    assert seen.real == str((tmp_path / "deep/er/image").resolve())
    assert seen.needs == ((1, 3000), (1, 500))
    assert seen.labels == "imagenet_2012_validation_synset_labels.txt"
    assert (seen.attempt, seen.linkable) == (10, True)
    assert seen.free_bytes > 0
    assert looked(tmp_path / "x", tmp_path / "none", tmp_path).needs == ((0, 0), (0, 0))


def test_a_path_that_is_taken_is_described(tmp_path: Path) -> None:
    """An empty folder is free; a set that was begun is known by its notes."""
    for name in ("empty", "there", "begun", "strange"):
        (tmp_path / name).mkdir()
    (tmp_path / "there/x").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "begun.partial/notes").mkdir(parents=True)
    (tmp_path / "begun.partial/notes/dataset").write_text("imagenet\n")
    (tmp_path / "begun.partial/set").mkdir()
    (tmp_path / "strange.partial").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    names = ("empty", "there", "file", "begun", "strange", "link")
    seen = {name: looked(tmp_path / name, None, tmp_path / "home") for name in names}
    assert {name: (observed.target, observed.partial) for name, observed in seen.items()} == {
        "empty": ("empty", None),
        "there": ("there", None),
        "file": ("file", None),
        "begun": ("empty", "imagenet"),
        "strange": ("empty", "-"),
        "link": ("there", None),
    }
    assert seen["link"].real == str((tmp_path / "there").resolve())
    assert seen["begun"].have_bytes > 0


def found(**changes: object) -> Observed:
    """Return a node where nothing prevents a preparation, but with these changes."""
    plain: dict[str, object] = {
        "real": "/data/image",
        "target": "missing",
        "partial": None,
        "have_bytes": 0,
        "free_bytes": 1 << 40,
        "attempt": 0,
        "linkable": False,
        "labels": "valprep.sh",
        "needs": ((1, 1000), (1, 100)),
    }
    return Observed(**{**plain, **changes})  # type: ignore[arg-type]  # each test names real fields


def chosen(dataset: Dataset, observed: Observed) -> tuple[Way, int]:
    """Return the way that a node's sources allow, and its bytes."""
    choice = look.choose_way(dataset, observed)
    assert choice is not None
    return choice


def test_an_extraction_needs_a_twentieth_more_than_the_tars() -> None:
    """Less what was extracted already, and a reserve for the file system."""
    rest = 64 << 20
    needs = ((1, 1_000_000_000), (1, 0))
    way, needed = chosen(known("imagenet"), found(needs=needs))
    assert (way.script, needed) == ("imagenet.sh", 1_050_000_000 + rest)
    _, less = chosen(known("imagenet"), found(needs=needs, have_bytes=1_000_000_000))
    assert less == 50_000_000 + rest


def test_links_need_no_disk_space() -> None:
    """Source and target are on one file system."""
    needs = ((32, 1 << 40), (0, 0))
    way, linked = chosen(known("wiki_ofrecord"), found(needs=needs, linkable=True))
    assert (way.script, linked) == ("place.sh", 64 << 20)
    _, copied = chosen(known("wiki_ofrecord"), found(needs=needs))
    assert copied > 1 << 40


@pytest.mark.parametrize(
    ("name", "needs"), [("imagenet", ((1, 5), (0, 0))), ("imagenet", ()), ("gpt", ((1, 9),))]
)
def test_without_all_sources_there_is_no_way(name: str, needs: tuple[tuple[int, int], ...]) -> None:
    """GPT's index is nothing without its tokens."""
    assert look.choose_way(known(name), found(needs=needs)) is None
    stem = "gpt_sample_dataset_text_document"
    assert known("gpt").ways[0].needs == (Need(f"{stem}[.]bin|{stem}[.]idx", True, 2),)


@pytest.mark.parametrize(
    ("changes", "code", "match"),
    [
        ({"target": "file"}, "DATA-TARGET", "/data/image is a file"),
        ({"target": "mount"}, "DATA-TARGET", "/data/image is a mount point"),
        ({"partial": "-"}, "DATA-TARGET", "/data/image.partial is there and no beginning"),
        ({"partial": "gpt"}, "DATA-TARGET", "/data/image.partial is there and no beginning"),
        ({"free_bytes": 5 << 20}, "DISK-FULL", "5 MiB free for /data/image.partial"),
    ],
)
def test_a_path_that_is_not_free_is_refused_before_anything_is_written(
    changes: dict[str, object], code: str, match: str
) -> None:
    args = (known("imagenet"), "vs001", "/data/image")
    (finding,) = look.findings(*args, found(**changes), 700 << 20)
    assert (finding.severity, finding.code) == ("error", code)
    assert match in finding.seen
    assert code != "DISK-FULL" or finding.expected == "at least 700 MiB"
    assert list(look.findings(*args, found(partial="imagenet"), 0)) == []


def test_missing_sources_are_listed_for_each_way() -> None:
    dataset = known("wiki_ofrecord")
    here = look.unmet(dataset, "vs001", "/data/downloads")
    assert here.seen == "/data/downloads on the node has not all of it"
    assert here.expected == "part-(0|[1-9]N*) or wiki_ofrecord_seq_len_128_example.tgz"
    assert look.unmet(dataset, "vs001", None).seen == "no --from DIR"
