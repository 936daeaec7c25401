"""Findings about data sets, from what their folders contain."""

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator.datasets import DATASETS, Dataset, NamedFiles, contents
from orchestrator.datasets.contents import COUNTS
from orchestrator.model.site import Finding

STEM = "gpt_sample_dataset_text_document"
NOTHING = dict.fromkeys(COUNTS, 0)
# As PyTorch's and DALI's readers count ImageNet.
WHOLE_TRAIN = {**NOTHING, "folders": 1000, "files": 1_281_167}
WHOLE_VAL = {**NOTHING, "folders": 1000, "files": 50_000}


def known(name: str) -> Dataset:
    return DATASETS[name]


def sizes(*names: str, each: int = 9) -> dict[str, int]:
    """Return the sizes of files with these names."""
    return dict.fromkeys(names, each)


def judged(name: str, *parts: dict[str, int]) -> list[Finding]:
    """Return the findings about a data set of these contents on node `vs001`."""
    return list(contents.judge(known(name), "vs001", "/data/set", parts))


TRAIN = sizes(*(f"train-{number:05}-of-01024" for number in range(1024)))
VALIDATION = sizes(*(f"validation-{number:05}-of-00128" for number in range(128)))
SHARDS = TRAIN | VALIDATION
BOTH = ("train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("imagenet", (WHOLE_TRAIN, WHOLE_VAL)),
        ("imagenet_tfrecord", (SHARDS | sizes("README"),) * 2),
        ("wiki_ofrecord", (sizes(*(f"part-{number}" for number in range(32))),)),
        ("gpt", (sizes(f"{STEM}.bin", f"{STEM}.idx"),)),
    ],
)
def test_a_whole_set_has_no_finding(name: str, parts: tuple[dict[str, int], ...]) -> None:
    assert judged(name, *parts) == []


def test_the_incomplete_imagenet_of_a_published_run_is_a_warning_with_numbers() -> None:
    """DLPerf's log: `read 886372 files from 698 directories`."""
    (finding,) = judged("imagenet", {**NOTHING, "folders": 698, "files": 886_372}, WHOLE_VAL)
    assert (finding.severity, finding.code) == ("warning", "DATA-INCOMPLETE")
    assert finding.seen == "886372 files in 698 folders of /data/set/train"
    assert finding.expected == "1281167 files in 1000 folders"


LACKING: dict[str, tuple[str, tuple[dict[str, int], ...]]] = {
    "no train image": ("imagenet", (NOTHING, WHOLE_VAL)),
    "no validation image": ("imagenet", (WHOLE_TRAIN, NOTHING)),
    "two empty classes": ("imagenet", ({**WHOLE_TRAIN, "empty_folders": 2}, WHOLE_VAL)),
    "seven empty images": ("imagenet", ({**WHOLE_TRAIN, "empty_files": 7}, WHOLE_VAL)),
    "an entry that is no class": ("imagenet", ({**WHOLE_TRAIN, "odd": 1}, WHOLE_VAL)),
    "no shard": ("imagenet_tfrecord", ({}, {})),
    "files that are no shards": ("imagenet_tfrecord", (sizes("train-1", "readme"),) * 2),
    "a small set that is whole": ("imagenet_tfrecord", (sizes(*BOTH),) * 2),
    "one shard of 1024": ("imagenet_tfrecord", (VALIDATION | sizes("train-00000-of-01024"),) * 2),
    "shards of two totals": (
        "imagenet_tfrecord",
        (VALIDATION | sizes("train-00000-of-00001", "train-00000-of-00002"),) * 2,
    ),
    "a shard more": ("imagenet_tfrecord", (SHARDS | sizes("train-00000-of-00001"),) * 2),
    "a number that nobody would list": ("wiki_ofrecord", (sizes("part-0", "part-999999999"),)),
    "a gap": ("wiki_ofrecord", (sizes("part-1"),)),
    "one part": ("wiki_ofrecord", (sizes("part-0"),)),
    "an empty part": ("wiki_ofrecord", (sizes("part-0", each=0),)),
    # BERT's reader does not pad the number: part-00000 is never opened.
    "padded parts": ("wiki_ofrecord", (sizes("part-00000", "part-00001"),)),
    "an index without tokens": ("gpt", (sizes(f"{STEM}.idx"),)),
    "neither index nor tokens": ("gpt", ({},)),
    "an empty index": ("gpt", ({f"{STEM}.bin": 9, f"{STEM}.idx": 0},)),
}


def test_a_lack_that_breaks_a_reader_is_an_error_and_another_a_warning(
    snapshot: SnapshotAssertion,
) -> None:
    found = {
        what: [
            f"{finding.severity} {finding.code}: {finding.seen}; needed {finding.expected}"
            for finding in judged(name, *parts)
        ]
        for what, (name, parts) in LACKING.items()
    }
    assert found == snapshot


@pytest.mark.parametrize(
    ("name", "parts", "said"),
    [
        (
            "imagenet",
            (WHOLE_TRAIN, WHOLE_VAL),
            "train: 1281167 files of 1000 classes, val: 50000 files of 1000 classes",
        ),
        (
            "imagenet_tfrecord",
            (sizes("train-00000-of-00001", "x"),) * 2,
            "train: 1 file, validation: 0 files",
        ),
        ("gpt", (sizes("x"),), "files: 0 files"),
    ],
)
def test_contents_are_described_by_the_files_of_each_part(
    name: str, parts: tuple[dict[str, int], ...], said: str
) -> None:
    assert contents.counted(known(name), parts) == said


def test_a_dot_of_a_named_file_matches_only_a_dot() -> None:
    assert NamedFiles("", ("a.bin", "a.idx")).pattern == "a[.]bin|a[.]idx"
