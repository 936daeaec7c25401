"""Data sets as records, their labels, what nodes say of them, and the verdicts."""

import subprocess
from pathlib import Path

import pytest

from orchestrator import datasets, errors
from orchestrator.datasets import (
    Classes,
    Dataset,
    Named,
    Need,
    Shards,
    Way,
    contents,
    judge,
    labels,
    look,
    progress,
)
from orchestrator.datasets.contents import ClassesSeen, Contents, FilesSeen
from orchestrator.datasets.look import Found, Wanted
from orchestrator.datasets.progress import Progress
from orchestrator.model.site import Finding
from tests.small_sets import CLASSES, jpeg, parts, tfrecords, valprep

NAMES = ("dali_idx", "gpt", "imagenet", "imagenet_ofrecord", "imagenet_tfrecord", "wiki_ofrecord")
WHOLE_TRAIN = ClassesSeen(folders=1000, files=1_281_167)
WHOLE_VAL = ClassesSeen(folders=1000, files=50_000)
NOTHING = ClassesSeen()


def known(name: str) -> Dataset:
    """A shipped data set."""
    found = datasets.find(name)
    assert found is not None
    return found


def judged(name: str, *contents: ClassesSeen | FilesSeen) -> list[Finding]:
    """What is wrong with a data set of these contents on node `vs001`."""
    return list(judge.judge(known(name), "vs001", "/data/set", contents))


def sizes(*names: str, each: int = 9) -> FilesSeen:
    """Files of these names."""
    return FilesSeen(dict.fromkeys(names, each))


def ask(dataset: Dataset, path: Path) -> Contents:
    """What the real script says of a folder here."""
    question = contents.probe(dataset, str(path))
    done = subprocess.run(question.argv, capture_output=True, text=True, timeout=60, check=True)
    return question.parse(done.stdout)


def found(**changes: object) -> Found:
    """A node where nothing stands against a preparation."""
    plain: dict[str, object] = {
        "real": "/data/image",
        "target": "missing",
        "mounted": False,
        "partial": None,
        "unwritable": "",
        "have_bytes": 0,
        "free_bytes": 1 << 40,
        "lacking": (),
        "attempt": 0,
        "from_there": True,
        "linkable": False,
        "labels": "valprep.sh",
        "needs": ((1, 1000), (1, 100)),
    }
    return Found(**{**plain, **changes})  # type: ignore[arg-type]  # each test names real fields


def looked(dataset: Dataset, target: Path, source: Path | None, home: Path) -> Found:
    """What the real script says of this machine."""
    wanted = Wanted(str(target), str(source) if source else None, str(home))
    question = look.probe(dataset, wanted)
    done = subprocess.run(question.argv, capture_output=True, text=True, timeout=60, check=True)
    return question.parse(done.stdout)


WANTED = Wanted("/data/image", "/data/downloads", "/var/tmp/dlperf-root/prepare/x")


def test_every_data_set_of_the_benchmarks_is_there() -> None:
    """A module's name is the registry; private ones and strangers are none."""
    assert datasets.names() == NAMES
    assert [known(name).name for name in NAMES] == list(NAMES)
    assert datasets.find("_judge") is None
    assert datasets.find("cifar10") is None


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


def test_tools_are_upstreams_own_commands() -> None:
    """Word for word, apart from where folders are mounted."""
    tools = {way.tool for name in NAMES for way in known(name).ways if way.tool}
    commands = {" ".join(tool.argv) for tool in tools}
    assert commands == {
        "bash utils/dali_index.sh /data/tfrecords /data/dali_idx",
        "python3 imagenet_ofrecord.py --train_directory /data/imagenet/train"
        " --output_directory /data/target/train --label_file imagenet_lsvrc_2015_synsets.txt"
        " --shards 256 --num_threads 8 --name train"
        " --bounding_box_file /data/source/imagenet_2012_bounding_boxes.csv"
        " --height 224 --width 224",
        "python3 tools/preprocess_data.py --input /data/source/openwebtext.json"
        " --output-prefix /data/target/gpt_sample_dataset --vocab /data/source/gpt2-vocab.json"
        " --dataset-impl mmap --tokenizer-type GPT2BPETokenizer"
        " --merge-file /data/source/gpt2-merges.txt --append-eod",
    }


def test_a_tool_that_passes_over_images_is_found_out() -> None:
    """imagenet_ofrecord.py ends with 0 whatever it could not read; its log tells."""
    (tool,) = (way.tool for way in known("imagenet_ofrecord").ways if way.tool)
    head = "Found 5 JPEG files across 1000 labels inside /data/imagenet/train.\n"
    wrote = "2020-08-22 10:00:00 [thread 0]: Wrote {} images to /data/target/train/part-0000{}\n"
    shards = "2020-08-22 10:00:01 [thread 0]: Wrote 5 images to 2 shards.\n"
    assert tool.doubt(head + wrote.format(3, 0) + wrote.format(2, 1) + shards) == ""
    assert tool.doubt(head + wrote.format(3, 0) + shards) == "it wrote 3 of 5 images"
    assert tool.doubt("Traceback\n") == "it names no image that it found"
    none = head.replace("5 JPEG", "0 JPEG")
    assert tool.doubt(none) == "it names no image that it found"
    other = next(way.tool for way in known("dali_idx").ways if way.tool)
    assert other.doubt("anything") == ""


# Labels.


def test_valprep_and_a_list_by_order_say_the_same() -> None:
    """Both forms in which the classes of validation images are passed around."""
    first = "ILSVRC2012_val_00000001.JPEG"
    moved = labels.parse(valprep(CLASSES, 4), "valprep.sh")
    listed = labels.parse("n01440764\nn01443537\nn01484850\n\nn01440764\n", "labels.txt")
    assert moved == listed
    assert moved[first] == "n01440764"
    assert len(moved) == 4
    assert labels.lines(moved).splitlines()[0] == f"{first} n01440764"


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
        ("n01440764\n" * 1_000_001, "1000001 lines; needed 50000"),
    ],
)
def test_labels_that_are_not_understood_are_refused(text: str, match: str) -> None:
    """The devkit's numbers are no classes by themselves; nothing is guessed."""
    with pytest.raises(errors.LogError, match=match) as raised:
        labels.parse(text, "x")
    assert raised.value.code == "LABELS"


# What a node has.


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
    assert train == ClassesSeen(folders=3, files=3, empty_folders=1, empty_files=1, odd=2)
    assert val == NOTHING


def test_files_are_listed_with_their_sizes(tmp_path: Path) -> None:
    """Whatever else lies there is told from files."""
    tfrecords(tmp_path / "tf", train=2, validation=1)
    (tmp_path / "tf" / "more").mkdir()
    train, val = ask(known("imagenet_tfrecord"), tmp_path / "tf")
    assert isinstance(train, FilesSeen)
    assert train.sizes == {
        "train-00000-of-00002": 1000,
        "train-00001-of-00002": 1001,
        "validation-00000-of-00001": 1000,
    }
    assert train.others == ("more",)
    assert val == train


def test_a_folder_that_is_not_there_has_no_file(tmp_path: Path) -> None:
    """Missing parts are the verdict's business; a missing data set is an error."""
    (tmp_path / "of").mkdir()
    assert ask(known("imagenet_ofrecord"), tmp_path / "of") == (FilesSeen({}),)
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
    assert raised.value.code == "DATA-DIFF"


# Verdicts.


def test_the_whole_set_has_no_finding() -> None:
    """As PyTorch's and DALI's readers count ImageNet."""
    assert judged("imagenet", WHOLE_TRAIN, WHOLE_VAL) == []


def test_the_published_runs_incomplete_imagenet_is_a_warning_with_numbers() -> None:
    """DLPerf's log: `read 886372 files from 698 directories`."""
    (finding,) = judged("imagenet", ClassesSeen(folders=698, files=886_372), WHOLE_VAL)
    assert (finding.severity, finding.code) == ("warning", "DATA-INCOMPLETE")
    assert finding.seen == "886372 files in 698 folders of /data/set/train"
    assert finding.expected == "1281167 files in 1000 folders"


@pytest.mark.parametrize(
    ("train", "val", "severity", "match"),
    [
        (NOTHING, WHOLE_VAL, "error", "0 files in 0 folders of /data/set/train"),
        (WHOLE_TRAIN, NOTHING, "warning", "0 files in 0 folders of /data/set/val"),
        (
            ClassesSeen(1000, 1_281_167, empty_folders=2),
            WHOLE_VAL,
            "error",
            "2 folders of /data/set/train are empty",
        ),
        (
            ClassesSeen(1000, 1_281_167, empty_files=7),
            WHOLE_VAL,
            "error",
            "7 files of /data/set/train have no byte",
        ),
        (
            ClassesSeen(1000, 1_281_167, odd=1),
            WHOLE_VAL,
            "warning",
            "1 entries of /data/set/train are neither",
        ),
    ],
)
def test_what_readers_stumble_over_is_an_error(
    train: ClassesSeen, val: ClassesSeen, severity: str, match: str
) -> None:
    """Less than all is a warning; what breaks a reader is not."""
    (finding,) = judged("imagenet", train, val)
    assert finding.severity == severity
    assert match in finding.seen


def test_all_shards_are_there() -> None:
    """1024 and 128, by name."""
    train = [f"train-{number:05}-of-01024" for number in range(1024)]
    validation = [f"validation-{number:05}-of-00128" for number in range(128)]
    both = sizes(*train, *validation, "README")
    assert judged("imagenet_tfrecord", both, both) == []


@pytest.mark.parametrize(
    ("names", "severity", "match"),
    [
        ((), "error", "no file in /data/set"),
        (("train-1", "readme"), "error", "readme, train-1 in /data/set"),
        (("train-00000-of-00002", "train-00001-of-00002"), "warning", "2 files train-* in"),
        (("train-00000-of-01024",), "error", "lacks train-00001-of-01024, train-00002-of-01024"),
        (
            ("train-00000-of-00001", "train-00000-of-00002"),
            "error",
            "files of /data/set tell of 1, 2 files in all",
        ),
        (("train-00000-of-99999",), "warning", "99999 files"),
    ],
)
def test_shards_are_judged_by_what_their_names_promise(
    names: tuple[str, ...], severity: str, match: str
) -> None:
    """A small set that keeps its own promise is whole, and less than upstream's."""
    seen = sizes(*names)
    findings = judged("imagenet_tfrecord", seen, seen)
    about_train = [each for each in findings if "validation" not in each.expected]
    assert severity in {each.severity for each in about_train}
    assert any(match in each.seen for each in about_train)


def test_a_made_up_total_gives_no_endless_list() -> None:
    """Names can promise what nobody would list."""
    (finding,) = judged("wiki_ofrecord", sizes("part-0", "part-999999999"))
    assert finding.seen == "/data/set tells of 1000000000 files"


def test_parts_without_a_total_count_from_zero() -> None:
    """A gap is an error, fewer than upstream's a warning, an empty one an error."""
    assert judged("wiki_ofrecord", sizes(*(f"part-{number}" for number in range(32)))) == []
    (gap,) = (e for e in judged("wiki_ofrecord", sizes("part-1")) if e.severity == "error")
    assert gap.seen == "/data/set lacks part-0"
    (few,) = judged("wiki_ofrecord", sizes("part-0"))
    assert (few.severity, few.seen) == ("warning", "1 files part-* in /data/set")
    empty, _ = judged("wiki_ofrecord", sizes("part-0", each=0))
    assert (empty.severity, empty.seen) == ("error", "part-0 in /data/set without a byte")


def test_padded_parts_are_not_what_berts_reader_asks_for() -> None:
    """It gives no length of the number: part-00000 is never opened."""
    (finding,) = judged("wiki_ofrecord", sizes("part-00000", "part-00001"))
    assert finding.severity == "error"
    assert finding.seen == "part-00000, part-00001 in /data/set"
    assert finding.expected == "part-0 and so on"


def test_both_files_of_gpt_belong_together() -> None:
    """Index without tokens, or an empty one, is an error."""
    stem = "gpt_sample_dataset_text_document"
    assert judged("gpt", sizes(f"{stem}.bin", f"{stem}.idx")) == []
    (finding,) = judged("gpt", sizes(f"{stem}.idx"))
    assert finding.seen == f"no {stem}.bin in /data/set"
    assert judged("gpt", NOTHING)[0].seen == f"no {stem}.bin in /data/set"
    (empty,) = judged("gpt", FilesSeen({f"{stem}.bin": 9, f"{stem}.idx": 0}))
    assert empty.seen == f"{stem}.idx in /data/set without a byte"


def test_an_index_belongs_to_its_records() -> None:
    """Other names, or files of the same size, are no index of them."""
    dataset = known("dali_idx")
    records = sizes("train-00000-of-00002", "train-00001-of-00002", each=1000)
    own = sizes("train-00000-of-00002", "validation-00000-of-00001")
    said = [each.seen for each in judge.unlike(dataset, "n", (own, own), (records, records))]
    assert said == [
        "dali_idx is without train-00001-of-00002",
        "dali_idx is beyond validation-00000-of-00001",
    ]
    copied = list(judge.unlike(dataset, "n", (records, records), (records, records)))
    assert [each.expected for each in copied] == ["an index, far smaller"]
    whole = sizes("train-00000-of-00002", "train-00001-of-00002")
    assert list(judge.unlike(dataset, "n", (whole, whole), (records, records))) == []
    classes = known("imagenet")
    seen = (WHOLE_TRAIN, WHOLE_VAL)
    assert list(judge.unlike(classes, "n", seen, seen)) == []


def test_what_there_is_is_said_in_words() -> None:
    """For tables."""
    said = judge.counted(known("imagenet"), (WHOLE_TRAIN, WHOLE_VAL))
    assert said == "train: 1281167 files of 1000 classes, val: 50000 files of 1000 classes"
    both = sizes("train-00000-of-00001", "x")
    assert judge.counted(known("imagenet_tfrecord"), (both, both)) == (
        "train: 1 files, validation: 0 files"
    )
    assert judge.counted(known("gpt"), (sizes("x"),)) == "files: 0 files"


# Can it be prepared?


def test_a_free_path_and_its_sources_are_found(tmp_path: Path) -> None:
    """Sizes of both tars, where labels are, and how much disk there is."""
    source = tmp_path / "from"
    source.mkdir()
    (source / "ILSVRC2012_img_train.tar").write_bytes(bytes(3000))
    (source / "ILSVRC2012_img_val.tar").write_bytes(bytes(500))
    (source / "imagenet_2012_validation_synset_labels.txt").write_text("n01440764\n")
    (tmp_path / "home/a2").mkdir(parents=True)
    (tmp_path / "home/a10").mkdir()
    seen = looked(known("imagenet"), tmp_path / "deep/er/image", source, tmp_path / "home")
    assert (seen.target, seen.partial, seen.unwritable) == ("missing", None, "")
    assert seen.real == str((tmp_path / "deep/er/image").resolve())
    assert seen.needs == ((1, 3000), (1, 500))
    assert seen.labels == "imagenet_2012_validation_synset_labels.txt"
    assert (seen.attempt, seen.from_there, seen.linkable, seen.lacking) == (10, True, True, ())
    assert seen.free_bytes > 0


def test_what_lies_at_the_path_is_told(tmp_path: Path) -> None:
    """An empty folder is free; a beginning of ours is known by its notes; others are not ours."""
    dataset, home = known("imagenet"), tmp_path / "home"
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
    seen = {name: looked(dataset, tmp_path / name, None, home) for name in names}
    assert [seen[name].target for name in names] == [
        *("empty", "there", "file", "empty", "empty", "there")
    ]
    assert seen["link"].real == str((tmp_path / "there").resolve())
    assert (seen["begun"].partial, seen["strange"].partial) == ("imagenet", "-")
    assert seen["begun"].have_bytes > 0
    gone = looked(dataset, tmp_path / "x", tmp_path / "none", home)
    assert (gone.from_there, gone.needs) == (False, ((0, 0), (0, 0)))


@pytest.mark.parametrize("text", ["", "free_kib 1\nattempt 0\n", "free_kib x\nattempt 0\nend\n"])
def test_a_node_that_does_not_say_is_an_error(text: str) -> None:
    """Free space that nobody read is not enough."""
    with pytest.raises(errors.LogError, match="did not say") as raised:
        look.parse(text)
    assert raised.value.code == "DATA-LOOK"


def test_a_need_that_does_not_read_is_an_error() -> None:
    """A size that was cut is no size."""
    with pytest.raises(errors.LogError, match="did not say"):
        look.parse("free_kib 1\nattempt 0\nneed 0 1\nend\n")


def test_the_disk_that_an_extraction_takes_is_asked_for() -> None:
    """A twentieth more than the tars, less what was extracted, and a rest for the file system."""
    rest = 64 << 20
    dataset = known("imagenet")
    needs = ((1, 1_000_000_000), (1, 0))
    ((way, needed),) = look.ways(dataset, found(needs=needs), {})
    assert (way.script, needed) == ("imagenet.sh", 1_050_000_000 + rest)
    ((_, less),) = look.ways(dataset, found(needs=needs, have_bytes=1_000_000_000), {})
    assert less == 50_000_000 + rest
    assert look.ways(dataset, found(needs=((1, 5), (0, 0))), {}) == []
    assert look.ways(dataset, found(needs=()), {}) == []


def test_links_take_no_disk() -> None:
    """Where source and target share a file system."""
    dataset = known("wiki_ofrecord")
    needs = ((32, 1 << 40), (0, 0))
    ((way, linked),) = look.ways(dataset, found(needs=needs, linkable=True), {})
    assert (way.script, linked) == ("place.sh", 64 << 20)
    ((_, copied),) = look.ways(dataset, found(needs=needs), {})
    assert copied > 1 << 40


def test_a_tool_needs_the_data_set_that_it_reads() -> None:
    """By its size on the node; without it the way is closed."""
    dataset = known("dali_idx")
    assert look.ways(dataset, found(needs=()), {}) == []
    ((way, needed),) = look.ways(dataset, found(needs=()), {"imagenet_tfrecord": 1_000_000_000})
    assert way.tool is not None
    assert needed == 10_000_000 + (64 << 20)


def test_both_files_of_gpt_are_needed() -> None:
    """An index alone is not ready-made."""
    dataset = known("gpt")
    assert dataset.ways[0].needs[0] == Need(
        "gpt_sample_dataset_text_document[.]bin|gpt_sample_dataset_text_document[.]idx", True, 2
    )
    one = found(needs=((1, 9), (0, 0), (0, 0), (0, 0), (0, 0)))
    assert look.ways(dataset, one, {}) == []


@pytest.mark.parametrize(
    ("changes", "code", "match"),
    [
        ({"target": "file"}, "DATA-TARGET", "/data/image is a file"),
        ({"mounted": True}, "DATA-TARGET", "/data/image is a mount point"),
        ({"partial": "-"}, "DATA-TARGET", "/data/image.partial is there and no beginning"),
        ({"partial": "gpt"}, "DATA-TARGET", "/data/image.partial is there and no beginning"),
        ({"unwritable": "/data"}, "DATA-TARGET", "/data cannot be written"),
        ({"lacking": ("flock", "tar")}, "DATA-LOOK", "no flock, tar on the node"),
    ],
)
def test_a_path_that_is_not_free_is_refused(
    changes: dict[str, object], code: str, match: str
) -> None:
    """Before anything is written."""
    (finding,) = look.refusals(known("imagenet"), "vs001", WANTED, found(**changes))
    assert (finding.severity, finding.code) == ("error", code)
    assert match in finding.seen


def test_a_free_path_is_not_refused() -> None:
    """Nor is one where the same data set was begun."""
    seen = found(partial="imagenet")
    assert list(look.refusals(known("imagenet"), "vs001", WANTED, seen)) == []


def test_what_is_missing_is_named() -> None:
    """The folder, or what it should hold; every way counts."""
    dataset = known("imagenet_ofrecord")
    here = look.unmet(dataset, "vs001", WANTED, found())
    assert here.seen == "/data/downloads on the node has not all of it"
    assert here.expected == (
        "part-N{5} or imagenet_2012_bounding_boxes.csv and data set imagenet on the node"
    )
    gone = look.unmet(dataset, "vs001", WANTED, found(from_there=False))
    assert gone.seen == "/data/downloads is no folder on the node"
    unnamed = Wanted("/data/image", None, "/home")
    assert look.unmet(dataset, "vs001", unnamed, found()).seen == "no --from DIR"


def test_a_disk_without_room_is_named_with_both_numbers() -> None:
    """MiB, as df says them."""
    finding = look.full("vs001", found(free_bytes=5 << 20), 700 << 20)
    assert finding.code == "DISK-FULL"
    assert finding.seen == "5 MiB free for /data/image.partial"
    assert finding.expected == "at least 700 MiB"


# Progress.


def test_the_last_whole_line_of_progress_counts() -> None:
    """A line that was cut says nothing yet."""
    text = "dlperf progress 1 1001 1300\nnoise\ndlperf progress 2 1001 2600\ndlperf progress 3 10"
    assert progress.last(text) == Progress(2, 1001, 2600)
    assert progress.last("noise") is None


def test_a_problem_has_a_code_and_words() -> None:
    """The first one named counts."""
    text = "dlperf problem DISK-FULL no space\ndlperf problem BUSY other\n"
    assert progress.problem(text) == ("DISK-FULL", "no space")
    assert progress.problem("problem x") is None


def test_the_time_left_is_told_once_it_can_be() -> None:
    """At the pace so far; nobody knows at the beginning, nor without a total."""
    first = Progress(100, 1001, 0)
    assert progress.left_s(first, first, 60) is None
    assert progress.left_s(first, Progress(200, 1001, 0), 50) == pytest.approx(400.5)
    assert progress.left_s(Progress(0, 0, 0), Progress(5, 0, 5), 50) is None


def test_many_nodes_are_told_in_one_line() -> None:
    """The one that is least far, the pace of all."""
    by_node = {"vs001": Progress(37, 1001, 5), "vs002": Progress(30, 1001, 5)}
    assert progress.told(by_node, 1204.4, "12:03") == (
        "vs[001-002]: 30 of 1001 done (vs002 is least far), 1204 files/s, about 12:03 left"
    )
    assert progress.told({"vs001": Progress(3, 0, 3)}, 0.0, "") == "vs001: 3 done, 0 files/s"
    assert progress.told({}, 0.0, "") == "beginning"


def test_a_named_file_is_matched_as_it_is() -> None:
    """A dot is a dot."""
    assert Named("", ("a.bin", "a.idx")).pattern == "a[.]bin|a[.]idx"
    way = Way(title="t", script="s.sh")
    assert (way.tool, way.needs) == (None, ())
