"""What is found wrong with a data set, from what lies in its folder."""

import pytest

from orchestrator.datasets import contents
from orchestrator.datasets.contents import COUNTS
from orchestrator.model.site import Finding
from tests.datasets.shipped import known, sizes


def counts(**some: int) -> dict[str, int]:
    """Counts of a folder of classes; what is not named is 0."""
    return {**dict.fromkeys(COUNTS, 0), **some}


WHOLE_TRAIN = counts(folders=1000, files=1_281_167)
WHOLE_VAL = counts(folders=1000, files=50_000)
NOTHING = counts()


def judged(name: str, *parts: dict[str, int]) -> list[Finding]:
    """What is wrong with a data set of these contents on node `vs001`."""
    return list(contents.judge(known(name), "vs001", "/data/set", parts))


def test_the_whole_set_has_no_finding() -> None:
    """As PyTorch's and DALI's readers count ImageNet."""
    assert judged("imagenet", WHOLE_TRAIN, WHOLE_VAL) == []


def test_the_published_runs_incomplete_imagenet_is_a_warning_with_numbers() -> None:
    """DLPerf's log: `read 886372 files from 698 directories`."""
    (finding,) = judged("imagenet", counts(folders=698, files=886_372), WHOLE_VAL)
    assert (finding.severity, finding.code) == ("warning", "DATA-INCOMPLETE")
    assert finding.seen == "886372 files in 698 folders of /data/set/train"
    assert finding.expected == "1281167 files in 1000 folders"


@pytest.mark.parametrize(
    ("train", "val", "severity", "match"),
    [
        (NOTHING, WHOLE_VAL, "error", "0 files in 0 folders of /data/set/train"),
        (WHOLE_TRAIN, NOTHING, "warning", "0 files in 0 folders of /data/set/val"),
        (
            {**WHOLE_TRAIN, "empty_folders": 2},
            WHOLE_VAL,
            "error",
            "2 folders of /data/set/train are empty",
        ),
        (
            {**WHOLE_TRAIN, "empty_files": 7},
            WHOLE_VAL,
            "error",
            "7 files of /data/set/train have no byte",
        ),
        (
            {**WHOLE_TRAIN, "odd": 1},
            WHOLE_VAL,
            "warning",
            "1 entries of /data/set/train are neither",
        ),
    ],
)
def test_what_readers_stumble_over_is_an_error(
    train: dict[str, int], val: dict[str, int], severity: str, match: str
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
        (("train-00000-of-00001", "train-00000-of-00002"), "error", "lacks train-00001-of-00002"),
    ],
)
def test_shards_are_judged_by_what_their_names_promise(
    names: tuple[str, ...], severity: str, match: str
) -> None:
    """A small set that keeps its own promise is whole, and less than upstream's."""
    seen = sizes(*names)
    findings = judged("imagenet_tfrecord", seen, seen)
    about_train = [finding for finding in findings if "validation" not in finding.expected]
    assert severity in {finding.severity for finding in about_train}
    assert any(match in finding.seen for finding in about_train)


def test_a_made_up_total_gives_no_endless_list() -> None:
    """Names can promise what nobody would list."""
    (finding,) = judged("wiki_ofrecord", sizes("part-0", "part-999999999"))
    assert finding.seen == "/data/set lacks part-1, part-2, part-3 and 19996 more"


def test_a_file_beside_a_whole_set_is_counted() -> None:
    """A program would read it too."""
    whole = sizes(*(f"train-{number:05}-of-01024" for number in range(1024)))
    findings = judged("imagenet_tfrecord", {**whole, "train-00000-of-00001": 9}, whole)
    assert findings[0].seen == "1025 files train-* in /data/set"


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
    assert finding.seen == f"/data/set lacks {stem}.bin"
    assert judged("gpt", {})[0].seen == f"/data/set lacks {stem}.bin, {stem}.idx"
    (empty,) = judged("gpt", {f"{stem}.bin": 9, f"{stem}.idx": 0})
    assert empty.seen == f"{stem}.idx in /data/set without a byte"


def test_what_there_is_is_said_in_words() -> None:
    """For tables."""
    said = contents.counted(known("imagenet"), (WHOLE_TRAIN, WHOLE_VAL))
    assert said == "train: 1281167 files of 1000 classes, val: 50000 files of 1000 classes"
    both = sizes("train-00000-of-00001", "x")
    assert contents.counted(known("imagenet_tfrecord"), (both, both)) == (
        "train: 1 files, validation: 0 files"
    )
    assert contents.counted(known("gpt"), (sizes("x"),)) == "files: 0 files"
