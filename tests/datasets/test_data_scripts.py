"""The scripts that prepare data sets, run as they are on small archives."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from orchestrator.preparing_data.prepare import find_problem, script
from tests import commands
from tests.datasets.stage import STEM, Stage, _quoted
from tests.small_sets import CLASSES, class_tar, imagenet_tars, jpeg, parts, tar, valprep


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Both small tars, their labels, and a folder that was begun."""
    made = Stage(tmp_path)
    imagenet_tars(made.source, images=2, validation=4)
    assert made.begin() == "own"
    made.label(valprep(CLASSES, 4))
    return made


def test_both_tars_become_folders_of_classes(stage: Stage) -> None:
    """Train as the inner tars say, validation as the labels say; everybody may read them."""
    done = stage.imagenet()
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.files() == [
        "train/n01440764/n01440764_0.JPEG",
        "train/n01440764/n01440764_1.JPEG",
        "train/n01443537/n01443537_0.JPEG",
        "train/n01443537/n01443537_1.JPEG",
        "train/n01484850/n01484850_0.JPEG",
        "train/n01484850/n01484850_1.JPEG",
        "val/n01440764/ILSVRC2012_val_00000001.JPEG",
        "val/n01440764/ILSVRC2012_val_00000004.JPEG",
        "val/n01443537/ILSVRC2012_val_00000002.JPEG",
        "val/n01484850/ILSVRC2012_val_00000003.JPEG",
    ]
    one = stage.partial / "set/train/n01440764/n01440764_1.JPEG"
    assert one.read_bytes() == jpeg(1)
    assert one.stat().st_mode & 0o777 == 0o644
    assert one.parent.stat().st_mode & 0o777 == 0o755
    assert done.stdout.splitlines()[-1] == "dlperf progress 4 4 10"
    assert sorted(path.name for path in stage.source.iterdir()) == [
        *("ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar", "valprep.sh")
    ]


def test_a_second_run_extracts_only_what_is_missing(stage: Stage) -> None:
    """A class that has its place is not touched again; one that was cut begins anew."""
    stage.imagenet()
    train = stage.partial / "set/train"
    before = (train / CLASSES[0]).stat().st_ino
    shutil.rmtree(train / CLASSES[1])
    shutil.rmtree(stage.partial / "set/val")
    (stage.partial / "new").mkdir()
    (stage.partial / "new/half.JPEG").write_bytes(b"x")
    done = stage.imagenet()
    assert done.returncode == 0, done.stdout + done.stderr
    assert (train / CLASSES[0]).stat().st_ino == before
    assert len(stage.files()) == 10
    assert not (stage.partial / "new").exists()


def test_files_that_were_lost_with_the_power_are_extracted_anew(stage: Stage) -> None:
    """What is not as it was extracted is removed and named; the next run brings it back."""
    stage.imagenet()
    (stage.partial / "set/train" / CLASSES[2] / f"{CLASSES[2]}_0.JPEG").write_bytes(b"")
    (stage.partial / "set/val" / CLASSES[0] / "ILSVRC2012_val_00000001.JPEG").unlink()
    code, words = stage.problem()
    assert code == "DATA-PARTS"
    assert words.startswith("2 classes were not as they had been extracted")
    assert stage.imagenet().returncode == 0
    assert len(stage.files()) == 10


@pytest.mark.parametrize("kept", [0, 300, 1500, 21_504, 22_000])
def test_a_tar_that_is_cut_is_named(stage: Stage, kept: int) -> None:
    """Wherever it ends, between two members too; no class that is not whole gets a place."""
    path = stage.source / "ILSVRC2012_img_train.tar"
    path.write_bytes(path.read_bytes()[:kept])
    code, words = stage.problem()
    assert code in ("SOURCE-DAMAGED", "SOURCE-ODD")
    assert "ILSVRC2012_img_train.tar" in words
    assert not any(name.startswith("val/") for name in stage.files())


def test_a_validation_tar_that_is_cut_between_images_is_named(stage: Stage) -> None:
    """An image takes two blocks here, with its header."""
    path = stage.source / "ILSVRC2012_img_val.tar"
    path.write_bytes(path.read_bytes()[:3072])
    code, words = stage.problem()
    assert code == "SOURCE-DAMAGED"
    assert words.endswith("ILSVRC2012_img_val.tar does not end as an archive ends; it was cut")


def test_a_class_that_is_cut_inside_a_whole_tar_is_named(stage: Stage) -> None:
    """The outer tar can be right and an inner one broken."""
    broken = class_tar(CLASSES[1], 3)[:1800]
    members = {"n01440764.tar": class_tar(CLASSES[0], 2), "n01443537.tar": broken}
    (stage.source / "ILSVRC2012_img_train.tar").write_bytes(tar(members))
    code, words = stage.problem()
    assert code == "SOURCE-DAMAGED"
    assert "n01443537.tar of" in words
    assert stage.files() == ["train/n01440764/n01440764_0.JPEG", "train/n01440764/n01440764_1.JPEG"]


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ({"n01440764.tar": b"", "readme.txt": b"x"}, "holds readme.txt"),
        ({"../n01440764.tar": b""}, "holds ../n01440764.tar"),
        ({}, "is empty"),
        ({"n01440764.tar": tar({})}, "holds no file"),
    ],
)
def test_a_tar_of_something_else_is_refused(
    stage: Stage, members: dict[str, bytes], match: str
) -> None:
    """Only a tar for each class, and images in it."""
    (stage.source / "ILSVRC2012_img_train.tar").write_bytes(tar(members))
    code, words = stage.problem()
    assert code == "SOURCE-ODD"
    assert match in words
    assert stage.files() == []


def test_links_in_a_class_are_refused(stage: Stage, tmp_path: Path) -> None:
    """A tar that leads elsewhere writes nowhere but into the folder that is thrown away."""
    inner = tmp_path / "inner.tar"
    with tarfile.open(inner, "w") as archive:
        link = tarfile.TarInfo("away")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "victim")
        archive.addfile(link)
    outer = tar({"n01440764.tar": inner.read_bytes()})
    (stage.source / "ILSVRC2012_img_train.tar").write_bytes(outer)
    assert stage.problem()[0] == "SOURCE-ODD"
    assert stage.files() == []


def test_an_image_without_a_class_is_named(stage: Stage) -> None:
    """No guess, and no validation folder that is half sorted."""
    stage.label(valprep(CLASSES, 3))
    code, words = stage.problem()
    assert code == "LABELS"
    assert "ILSVRC2012_val_00000004.JPEG" in words
    assert not (stage.partial / "set/val").exists()


def test_other_tars_do_not_go_on_where_the_first_ended(stage: Stage) -> None:
    """Half of one set and half of another would look whole."""
    stage.imagenet()
    shutil.rmtree(stage.partial / "set/train" / CLASSES[1])
    imagenet_tars(stage.source, images=3, validation=4)
    code, words = stage.problem()
    assert code == "SOURCE-CHANGED"
    assert "remove it" in words


def test_two_preparations_do_not_meet(stage: Stage) -> None:
    """The second is told that somebody works there."""
    held = subprocess.Popen(
        ("flock", str(stage.partial / "notes/lock"), "sh", "-c", "echo; exec sleep 30"),
        stdout=subprocess.PIPE,
    )
    assert held.stdout is not None
    held.stdout.readline()
    try:
        assert stage.problem()[0] == "BUSY"
    finally:
        held.kill()
        held.wait()
        held.stdout.close()


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_is_named(stage: Stage) -> None:
    """In tar's own words; with room, the next run goes on."""
    imagenet_tars(stage.source, images=40, validation=4)
    mount = f'mount -t tmpfs -o size=100k small {stage.partial} && exec sh -c "$@"'
    whole = f"""
        mkdir -p {stage.partial}/notes {stage.partial}/set
        exec sh -c '{_quoted(script("imagenet.sh"))}' x {stage.partial} {stage.source}"""
    done = commands.run(["unshare", "--mount", "sh", "-c", mount, "sh", whole], timeout_s=60)
    named = find_problem(done.stdout)
    assert named is not None, done.stdout + done.stderr
    assert named[0] == "DISK-FULL"


# The folder and its name.


def test_of_several_nodes_at_one_place_the_first_does_the_work(stage: Stage) -> None:
    """In one run; a later run may have another first."""
    assert stage.begin(node="vs001", nonce="2") == "own"
    assert stage.begin(node="vs002", nonce="2") == "shared vs001"
    assert stage.begin(node="vs002", nonce="3") == "own"
    claims = [path.name for path in (stage.partial / "notes").glob("claim.*")]
    assert claims == ["claim.3"]


def test_what_was_begun_in_another_way_is_thrown_away(stage: Stage) -> None:
    """The same way goes on; work that goes on is not touched."""
    kept = stage.partial / "set/train/x"
    for way, stays in (("0", True), ("as it is", True), ("1", False), ("1", True)):
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text("x")
        stage.begin(way=way)
        assert kept.exists() == stays, way


def test_a_finished_set_gets_its_name_and_replaces_nothing(stage: Stage) -> None:
    """An empty folder gives way; anything else does not."""
    target = stage.folder / "image"
    stage.imagenet()
    target.mkdir()
    (target / "mine").write_text("x")
    done = stage.run("settle.sh", str(target), str(stage.partial))
    assert done.returncode == 1
    assert "has come to be meanwhile" in done.stderr
    assert (target / "mine").read_text() == "x"
    (target / "mine").unlink()
    assert stage.run("settle.sh", str(target), str(stage.partial)).returncode == 0
    assert (target / "train" / CLASSES[0]).is_dir()
    assert not stage.partial.exists()
    assert target.stat().st_mode & 0o777 == 0o755


# Ready-made files.


def test_ready_made_files_are_linked(stage: Stage) -> None:
    """On one file system; nothing is copied, and what does not belong stays where it is."""
    parts(stage.source, 3, digits=5)
    (stage.source / "part-00001.bak").write_text("x")
    words = (str(stage.partial), str(stage.source), "train", "part-[0-9]{5}")
    done = stage.run("place.sh", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.files() == ["train/part-00000", "train/part-00001", "train/part-00002"]
    one = stage.partial / "set/train/part-00001"
    assert one.samefile(stage.source / "part-00001")
    before = one.stat().st_ctime_ns
    assert stage.run("place.sh", *words).returncode == 0
    assert one.stat().st_ctime_ns == before
    assert done.stdout.splitlines()[-1] == "dlperf progress 3 3 3"


def test_files_of_several_parts_and_folders_come_together(stage: Stage) -> None:
    """Converters leave train and validation files in a folder each; programs want one."""
    for name in ("train/train-00000-of-00001", "validation/validation-00000-of-00001"):
        (stage.source / name).parent.mkdir()
        (stage.source / name).write_text("x")
    patterns = ("", STEM, "", STEM.replace("train", "validation"))
    done = stage.run("place.sh", str(stage.partial), str(stage.source), *patterns)
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.files() == ["train-00000-of-00001", "validation-00000-of-00001"]


def test_one_name_in_two_folders_is_refused(stage: Stage) -> None:
    """Nobody knows which is meant."""
    parts(stage.source, 1)
    parts(stage.source / "old", 1)
    done = stage.run("place.sh", str(stage.partial), str(stage.source), "", "part-[0-9]*")
    assert find_problem(done.stdout) == (
        "SOURCE-ODD",
        f"{stage.source} holds part-0 in several folders",
    )


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small disk needs root")
def test_files_of_another_file_system_are_copied_and_compared(stage: Stage) -> None:
    """Where no link can be; a disk without room is named."""
    parts(stage.source, 3)
    for size, files in (("1m", 3), ("8k", 0)):
        inner = f"""
            mount -t tmpfs -o size={size} small {stage.partial}
            mkdir -p {stage.partial}/notes {stage.partial}/set
            sh -c '{_quoted(script("place.sh"))}' x {stage.partial} {stage.source} '' 'part-[0-9]'
            cmp {stage.partial}/set/part-1 {stage.source}/part-1 && ls {stage.partial}/set | wc -l
        """
        done = commands.run(["unshare", "--mount", "sh", "-c", inner])
        if files:
            assert done.stdout.splitlines()[-1].strip() == str(files), done.stdout + done.stderr
        else:
            named = find_problem(done.stdout)
            assert named is not None, done.stdout + done.stderr
            assert named[0] == "DISK-FULL"


def test_the_sample_of_wikipedia_is_unpacked(stage: Stage) -> None:
    """Whatever folder of the archive it lies in; a cut archive and a strange one are named."""
    name = "wiki_ofrecord_seq_len_128_example.tgz"
    words = (str(stage.partial), str(stage.source), name, "part-(0|[1-9][0-9]*)")
    inner = parts(stage.folder / "wiki_ofrecord_seq_len_128_example", 1)
    with tarfile.open(stage.source / name, "w:gz") as archive:
        archive.add(inner, inner.name)
    done = stage.run("unpack.sh", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.files() == ["part-0"]
    whole = (stage.source / name).read_bytes()
    (stage.source / name).write_bytes(whole[: len(whole) // 2])
    named = find_problem(stage.run("unpack.sh", *words).stdout)
    assert named is not None
    assert named[0] == "SOURCE-DAMAGED"
    with tarfile.open(stage.source / name, "w:gz") as archive:
        archive.add(stage.source / "valprep.sh", "valprep.sh")
    named = find_problem(stage.run("unpack.sh", *words).stdout)
    assert named is not None
    assert named[0] == "SOURCE-ODD"
