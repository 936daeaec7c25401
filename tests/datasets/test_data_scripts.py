"""The scripts that prepare data sets, run as they are on small archives."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.datasets import look
from orchestrator.preparing_data.prepare import find_problem, find_progress, script
from tests import commands
from tests.data_sets import CLASSES, class_tar, imagenet_tars, jpeg, parts, tar, valprep

STEM = "train-[0-9]{5}-of-[0-9]{5}"
TRAIN, VAL = "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"
mounts = pytest.mark.skipif(os.getuid() != 0, reason="mounting a small disk needs root")


class Stage:
    """A folder where a data set is prepared, with the sources of ImageNet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.partial, self.source = folder / "image.partial", folder / "from"

    def begin(self, way: str = "0", node: str = "vs001", nonce: str = "1") -> str:
        """Make the folder of the preparation; return what the script prints."""
        words = (str(self.partial), "imagenet", node, nonce, way)
        return self.run("begin.sh", *words).stdout.strip()

    def label(self, text: str) -> None:
        """Write the classes of validation images."""
        (self.partial / "notes/labels").write_bytes(look.parse_labels(text, "valprep.sh"))

    def imagenet(self) -> "subprocess.CompletedProcess[str]":
        """Extract both tars."""
        return self.run("imagenet.sh", str(self.partial), str(self.source))

    def place(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Put ready-made files into their place: folders and patterns of names."""
        return self.run("place.sh", str(self.partial), str(self.source), *words)

    def problem(self) -> tuple[str, str]:
        """Extract both tars, which must fail; return the code and the words."""
        done = self.imagenet()
        assert done.returncode == 3, done.stdout + done.stderr
        return named(done)

    def run(self, name: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a shipped script under the umask of tasks."""
        within = f'umask 077; exec sh -c {quoted(script(name))} "$0" "$@"'
        return commands.run(["sh", "-c", within, name, *words], timeout_s=60)

    def on_small_disk(self, size: str, text: str) -> "subprocess.CompletedProcess[str]":
        """Run a shell's text where the folder of the preparation is a disk of this size."""
        inner = f"""
            mount -t tmpfs -o size={size} small {self.partial}
            mkdir -p {self.partial}/notes {self.partial}/set
            {text}"""
        return commands.run(["unshare", "--mount", "sh", "-c", inner], timeout_s=60)

    def files(self) -> list[str]:
        """Return every file of the set, by its path in the set."""
        found = (self.partial / "set").rglob("*")
        return sorted(
            str(path.relative_to(self.partial / "set")) for path in found if path.is_file()
        )


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def named(done: "subprocess.CompletedProcess[str]") -> tuple[str, str]:
    """Return the code and the words of the problem that a script names."""
    found = find_problem(done.stdout)
    assert found is not None, done.stdout + done.stderr
    return found


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Return a stage with both small tars, their labels, and a folder that was begun."""
    made = Stage(tmp_path)
    imagenet_tars(made.source, images=2, validation=4)
    assert made.begin() == "own"
    made.label(valprep(CLASSES, 4))
    return made


def test_both_tars_become_readable_folders_of_classes(stage: Stage) -> None:
    """Train as the inner tars say, validation as the labels say; the sources stay."""
    done = stage.imagenet()
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.files() == [
        *(f"train/{name}/{name}_{number}.JPEG" for name in CLASSES for number in (0, 1)),
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
    assert sorted(path.name for path in stage.source.iterdir()) == [TRAIN, VAL, "valprep.sh"]


def test_a_second_run_extracts_only_what_is_missing(stage: Stage) -> None:
    """A class in its place is not touched again; one that was cut is extracted again."""
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


def test_files_that_a_power_loss_damaged_are_extracted_again(stage: Stage) -> None:
    """Their classes are removed and counted first."""
    stage.imagenet()
    (stage.partial / "set/train" / CLASSES[2] / f"{CLASSES[2]}_0.JPEG").write_bytes(b"")
    (stage.partial / "set/val" / CLASSES[0] / "ILSVRC2012_val_00000001.JPEG").unlink()
    code, words = stage.problem()
    assert code == "DATA-PARTS"
    assert words.startswith("2 classes were not as they had been extracted")
    assert stage.imagenet().returncode == 0
    assert len(stage.files()) == 10


def cut(name: str, kept: int) -> Callable[[Stage], object]:
    """Return a function that cuts a tar of a stage."""
    return lambda stage: os.truncate(stage.source / name, kept)


def replaced(members: dict[str, bytes]) -> Callable[[Stage], object]:
    """Return a function that replaces the train tar of a stage."""
    return lambda stage: (stage.source / TRAIN).write_bytes(tar(members))


def linked(stage: Stage) -> None:
    """Put a link into a class."""
    inner = stage.folder / "inner.tar"
    with tarfile.open(inner, "w") as archive:
        link = tarfile.TarInfo("away")
        link.type, link.linkname = tarfile.SYMTYPE, str(stage.folder / "victim")
        archive.addfile(link)
    replaced({"n01440764.tar": inner.read_bytes()})(stage)


WHOLE, BROKEN = class_tar(CLASSES[0], 2), class_tar(CLASSES[1], 3)[:1800]


@pytest.mark.parametrize(
    ("damage", "code", "words", "left"),
    [
        *((cut(TRAIN, kept), "SOURCE-DAMAGED", TRAIN, None) for kept in (300, 1500, 22_000)),
        (cut(TRAIN, 0), "SOURCE-DAMAGED", TRAIN, []),
        (cut(TRAIN, 21_504), "SOURCE-DAMAGED", TRAIN, None),  # between two members
        (cut(VAL, 3072), "SOURCE-DAMAGED", f"{VAL} does not end as an archive ends", None),
        (
            replaced({"n01440764.tar": WHOLE, "n01443537.tar": BROKEN}),
            "SOURCE-DAMAGED",
            "n01443537.tar of",
            ["train/n01440764/n01440764_0.JPEG", "train/n01440764/n01440764_1.JPEG"],
        ),
        (replaced({"n01440764.tar": b"", "readme.txt": b"x"}), "SOURCE-ODD", "holds readme", []),
        (replaced({"../n01440764.tar": b""}), "SOURCE-ODD", "holds ../n01440764.tar", []),
        (replaced({}), "SOURCE-ODD", "is empty", []),
        (replaced({"n01440764.tar": tar({})}), "SOURCE-ODD", "holds no file", []),
        (linked, "SOURCE-ODD", "", []),
        (lambda stage: stage.label(valprep(CLASSES, 3)), "LABELS", "val_00000004.JPEG", None),
    ],
    ids=[
        *("cut-300", "cut-1500", "cut-22000", "empty", "cut-between", "cut-val", "cut-class"),
        *("other-file", "path", "no-member", "no-image", "link", "no-label"),
    ],
)
def test_a_damaged_source_is_named_and_no_part_of_it_gets_a_place(
    stage: Stage, damage: Callable[[Stage], object], code: str, words: str, left: list[str] | None
) -> None:
    damage(stage)
    seen, said = stage.problem()
    assert seen == code
    assert words in said
    assert not any(name.startswith("val/") for name in stage.files())
    assert left is None or stage.files() == left


def test_other_tars_do_not_continue_where_the_first_ended(stage: Stage) -> None:
    """Half of one set and half of another would look whole."""
    stage.imagenet()
    shutil.rmtree(stage.partial / "set/train" / CLASSES[1])
    imagenet_tars(stage.source, images=3, validation=4)
    code, words = stage.problem()
    assert code == "SOURCE-CHANGED"
    assert "remove it" in words


def test_a_second_preparation_of_a_folder_is_refused(stage: Stage) -> None:
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


@mounts
def test_a_full_disk_is_named(stage: Stage) -> None:
    imagenet_tars(stage.source, images=40, validation=4)
    extract = f"sh -c {quoted(script('imagenet.sh'))} x {stage.partial} {stage.source}"
    assert named(stage.on_small_disk("100k", extract))[0] == "DISK-FULL"


def test_of_several_nodes_at_one_place_the_first_does_the_work(stage: Stage) -> None:
    """In one run; in a later run another node may be first."""
    assert stage.begin(node="vs001", nonce="2") == "own"
    assert stage.begin(node="vs002", nonce="2") == "shared vs001"
    assert stage.begin(node="vs002", nonce="3") == "own"
    claims = [path.name for path in (stage.partial / "notes").glob("claim.*")]
    assert claims == ["claim.3"]


def test_a_set_that_was_begun_in_another_way_is_begun_again(stage: Stage) -> None:
    """A set continues only in the way in which it was begun; else it is begun anew."""
    kept = stage.partial / "set/train/x"
    for way, stays in (("0", True), ("as it is", True), ("1", False), ("1", True)):
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text("x")
        stage.begin(way=way)
        assert kept.exists() == stays, way


def test_a_finished_set_gets_its_name_and_replaces_only_an_empty_folder(stage: Stage) -> None:
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


def test_ready_made_files_are_linked(stage: Stage) -> None:
    """On one file system nothing is copied; other files stay where they are."""
    parts(stage.source, 3, digits=5)
    (stage.source / "part-00001.bak").write_text("x")
    done = stage.place("train", "part-[0-9]{5}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.files() == ["train/part-00000", "train/part-00001", "train/part-00002"]
    one = stage.partial / "set/train/part-00001"
    assert one.samefile(stage.source / "part-00001")
    before = one.stat().st_ctime_ns
    assert stage.place("train", "part-[0-9]{5}").returncode == 0
    assert one.stat().st_ctime_ns == before
    assert done.stdout.splitlines()[-1] == "dlperf progress 3 3 3"


def test_files_of_several_folders_are_placed_together(stage: Stage) -> None:
    """Converters leave train and validation files in a folder each; programs want one."""
    for name in ("train/train-00000-of-00001", "validation/validation-00000-of-00001"):
        (stage.source / name).parent.mkdir()
        (stage.source / name).write_text("x")
    done = stage.place("", STEM, "", STEM.replace("train", "validation"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.files() == ["train-00000-of-00001", "validation-00000-of-00001"]


def test_one_name_in_two_folders_is_refused(stage: Stage) -> None:
    parts(stage.source, 1)
    parts(stage.source / "old", 1)
    words = f"{stage.source} holds part-0 in several folders"
    assert named(stage.place("", "part-[0-9]*")) == ("SOURCE-ODD", words)


@mounts
@pytest.mark.parametrize(("size", "files"), [("1m", 3), ("8k", 0)])
def test_files_of_another_file_system_are_copied_and_compared(
    stage: Stage, size: str, files: int
) -> None:
    """A disk without room is named."""
    parts(stage.source, 3)
    place = f"sh -c {quoted(script('place.sh'))} x {stage.partial} {stage.source} '' 'part-[0-9]'"
    compare = f"cmp {stage.partial}/set/part-1 {stage.source}/part-1"
    done = stage.on_small_disk(size, f"{place}\n{compare} && ls {stage.partial}/set | wc -l")
    if files:
        assert done.stdout.splitlines()[-1].strip() == str(files), done.stdout + done.stderr
    else:
        assert named(done)[0] == "DISK-FULL"


def test_the_sample_of_wikipedia_is_unpacked(stage: Stage) -> None:
    """From any folder of the archive; a cut archive and one of other files are named."""
    archive = stage.source / "wiki_ofrecord_seq_len_128_example.tgz"
    pattern = "part-(0|[1-9][0-9]*)"
    words = (str(stage.partial), str(stage.source), archive.name, pattern)
    inner = parts(stage.folder / "wiki_ofrecord_seq_len_128_example", 1)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(inner, inner.name)
    done = stage.run("unpack.sh", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.files() == ["part-0"]
    os.truncate(archive, archive.stat().st_size // 2)
    assert named(stage.run("unpack.sh", *words))[0] == "SOURCE-DAMAGED"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(stage.source / "valprep.sh", "valprep.sh")
    assert named(stage.run("unpack.sh", *words))[0] == "SOURCE-ODD"


def test_the_last_whole_line_of_progress_counts() -> None:
    text = "dlperf progress 1 1001 1300\nnoise\ndlperf progress 2 1001 2600\ndlperf progress 3 10"
    assert find_progress(text) == (2, 1001)
    assert find_progress("noise") is None


def test_the_first_problem_that_a_log_names_counts() -> None:
    text = "dlperf problem DISK-FULL no space\ndlperf problem BUSY other\n"
    assert find_problem(text) == ("DISK-FULL", "no space")
    assert find_problem("problem x") is None
