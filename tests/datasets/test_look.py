"""Before a preparation: what a node has, what stands against it, and the room it takes."""

import subprocess
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.datasets import Dataset, Need, Way, look
from orchestrator.datasets.look import Observed
from tests.datasets.shipped import known


def found(**changes: object) -> Observed:
    """A node where nothing stands against a preparation."""
    plain: dict[str, object] = {
        "real": "/data/image",
        "target": "missing",
        "partial": None,
        "have_bytes": 0,
        "free_bytes": 1 << 40,
        "lacking": (),
        "attempt": 0,
        "linkable": False,
        "labels": "valprep.sh",
        "needs": ((1, 1000), (1, 100)),
    }
    return Observed(**{**plain, **changes})  # type: ignore[arg-type]  # each test names real fields


def looked(dataset: Dataset, target: Path, source: Path | None, home: Path) -> Observed:
    """What the real script says of this machine."""
    question = look.probe(dataset, str(target), str(source) if source else None, str(home))
    done = subprocess.run(question.argv, capture_output=True, text=True, timeout=60, check=True)
    return question.parse(done.stdout)


TARGET, SOURCE = "/data/image", "/data/downloads"


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
    assert (seen.target, seen.partial) == ("missing", None)
    assert seen.real == str((tmp_path / "deep/er/image").resolve())
    assert seen.needs == ((1, 3000), (1, 500))
    assert seen.labels == "imagenet_2012_validation_synset_labels.txt"
    assert (seen.attempt, seen.linkable, seen.lacking) == (10, True, ())
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
    assert looked(dataset, tmp_path / "x", tmp_path / "none", home).needs == ((0, 0), (0, 0))


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


def chosen(dataset: Dataset, observed: Observed) -> tuple[Way, int]:
    """Return the way that a node's sources allow, and its bytes."""
    choice = look.choose_way(dataset, observed)
    assert choice is not None
    return choice


def test_the_disk_that_an_extraction_takes_is_asked_for() -> None:
    """A twentieth more than the tars, less what was extracted, and a rest for the file system."""
    rest = 64 << 20
    dataset = known("imagenet")
    needs = ((1, 1_000_000_000), (1, 0))
    way, needed = chosen(dataset, found(needs=needs))
    assert (way.script, needed) == ("imagenet.sh", 1_050_000_000 + rest)
    _, less = chosen(dataset, found(needs=needs, have_bytes=1_000_000_000))
    assert less == 50_000_000 + rest
    assert look.choose_way(dataset, found(needs=((1, 5), (0, 0)))) is None
    assert look.choose_way(dataset, found(needs=())) is None


def test_links_take_no_disk() -> None:
    """Where source and target share a file system."""
    dataset = known("wiki_ofrecord")
    needs = ((32, 1 << 40), (0, 0))
    way, linked = chosen(dataset, found(needs=needs, linkable=True))
    assert (way.script, linked) == ("place.sh", 64 << 20)
    _, copied = chosen(dataset, found(needs=needs))
    assert copied > 1 << 40


def test_both_files_of_gpt_are_needed() -> None:
    """An index alone is not ready-made."""
    dataset = known("gpt")
    assert dataset.ways[0].needs[0] == Need(
        "gpt_sample_dataset_text_document[.]bin|gpt_sample_dataset_text_document[.]idx", True, 2
    )
    one = found(needs=((1, 9),))
    assert look.choose_way(dataset, one) is None


@pytest.mark.parametrize(
    ("changes", "code", "match"),
    [
        ({"target": "file"}, "DATA-TARGET", "/data/image is a file"),
        ({"target": "mount"}, "DATA-TARGET", "/data/image is a mount point"),
        ({"partial": "-"}, "DATA-TARGET", "/data/image.partial is there and no beginning"),
        ({"partial": "gpt"}, "DATA-TARGET", "/data/image.partial is there and no beginning"),
        ({"lacking": ("flock", "tar")}, "DATA-LOOK", "no flock, tar on the node"),
    ],
)
def test_a_path_that_is_not_free_is_refused(
    changes: dict[str, object], code: str, match: str
) -> None:
    """Before anything is written."""
    (finding,) = look.findings(known("imagenet"), "vs001", TARGET, found(**changes), 0)
    assert (finding.severity, finding.code) == ("error", code)
    assert match in finding.seen


def test_a_free_path_is_not_refused() -> None:
    """Nor is one where the same data set was begun."""
    seen = found(partial="imagenet")
    assert list(look.findings(known("imagenet"), "vs001", TARGET, seen, 0)) == []


def test_what_is_missing_is_named() -> None:
    """The finding lists what the folder should hold for each way of preparing."""
    dataset = known("wiki_ofrecord")
    here = look.unmet(dataset, "vs001", SOURCE)
    assert here.seen == "/data/downloads on the node has not all of it"
    assert here.expected == ("part-(0|[1-9]N*) or wiki_ofrecord_seq_len_128_example.tgz")
    assert look.unmet(dataset, "vs001", None).seen == "no --from DIR"


def test_a_disk_without_room_is_named_with_both_numbers() -> None:
    """MiB, as df says them."""
    seen = found(free_bytes=5 << 20)
    (finding,) = look.findings(known("imagenet"), "vs001", TARGET, seen, 700 << 20)
    assert finding.code == "DISK-FULL"
    assert finding.seen == "5 MiB free for /data/image.partial"
    assert finding.expected == "at least 700 MiB"
