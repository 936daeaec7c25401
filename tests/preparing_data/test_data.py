"""Data sets on nodes: the command line, on this machine and through real sshds."""

import getpass
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.data_sets import CLASSES, imagenet_tars, jpeg, parts, tfrecords
from tests.preparing_data.nodes import Nodes, codes
from tests.processes import wait_for
from tests.sshd import Sshd

pytestmark = pytest.mark.cluster
# Meanwhile no other test may sweep on this machine.
prepares = pytest.mark.usefixtures("machine_alone")
MANY = tuple(f"n{number:08}" for number in range(1, 401))


def files(folder: Path) -> int:
    """Return the number of files below a folder."""
    return sum(path.is_file() for path in folder.rglob("*"))


def states(document: Any) -> dict[str, str]:
    """Return the state of each node."""
    return {name: node["state"] for name, node in document["nodes"].items()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with the small tars of ImageNet."""
    return imagenet_tars(tmp_path / "from")


@prepares
def test_imagenet_is_prepared_on_every_node_once(nodes: Nodes, source: Path) -> None:
    """A small set is prepared and reported as incomplete; a second run touches nothing."""
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/deep/image")
    said = nodes.json("prepare", "imagenet", "--from", str(source))
    assert states(said) == {"node1": "prepared", "node2": "prepared"}
    assert codes(said) == {("warning", "DATA-INCOMPLETE")}
    for name in ("node1", "node2"):
        image = nodes.folder / name / "deep/image"
        assert sorted(path.name for path in (image / "train").iterdir()) == list(CLASSES)
        assert (image / "train" / CLASSES[0] / f"{CLASSES[0]}_3.JPEG").read_bytes() == jpeg(3)
        assert files(image) == 3 * 4 + 5
        assert [path.name for path in image.parent.iterdir()] == ["image"]
        assert said["held"][name]["files"] == 17
    assert said["held"]["node1"]["digest"] == said["held"]["node2"]["digest"]
    assert not list((nodes.folder / "node1-work/prepare").iterdir())
    assert sorted(path.name for path in source.iterdir()) == [
        *("ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar", "valprep.sh")
    ]
    image = nodes.folder / "node1/deep/image"
    before = image.stat().st_ctime_ns
    said = nodes.json("prepare", "imagenet", "--from", str(source))
    assert states(said) == {"node1": "there", "node2": "there"}
    assert image.stat().st_ctime_ns == before
    assert said["held"]["node2"]["files"] == 17


@prepares
def test_files_at_the_path_are_never_overwritten(nodes: Nodes, source: Path) -> None:
    """They are an error of their node; the other node is prepared."""
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    mine = nodes.folder / "node1/image/mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("x")
    said = nodes.json("prepare", "imagenet", "--from", str(source), code=5)
    assert states(said) == {"node1": "there", "node2": "prepared"}
    assert mine.read_text() == "x"
    assert {("error", "DATA-PARTS"), ("error", "DATA-DIFF")} <= codes(said)


@prepares
def test_nodes_with_one_file_system_do_the_work_once(nodes: Nodes, source: Path) -> None:
    nodes.write(imagenet=f"{nodes.folder}/common/image")
    said = nodes.json("prepare", "imagenet", "--from", str(source))
    assert sorted(states(said).values()) == ["prepared", "shared"]
    assert set(said["held"]) == {"node1", "node2"}
    assert files(nodes.folder / "common") == 17


def test_a_dry_run_shows_the_work_and_writes_nothing(nodes: Nodes, source: Path) -> None:
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    said = nodes.json("prepare", "imagenet", "--from", str(source), "--dry-run")
    assert states(said) == {"node1": "ready", "node2": "ready"}
    assert "extracts ILSVRC2012's tars" in said["nodes"]["node1"]["what"]
    assert said["nodes"]["node1"]["needed_bytes"] > 64 << 20
    assert list(nodes.folder.iterdir()) == []
    shown = nodes.run("prepare", "imagenet", "--from", str(source), "--dry-run").stdout
    assert "extracts ILSVRC2012's tars" in shown


TRAIN = "ILSVRC2012_img_train.tar"
HINDRANCES: list[tuple[str, Callable[[Path, Path], object]]] = [
    ("DATA-SOURCE", lambda source, _: (source / "ILSVRC2012_img_val.tar").unlink()),
    ("LABELS", lambda source, _: (source / "valprep.sh").unlink()),
    ("LABELS", lambda source, _: (source / "valprep.sh").write_text("490\n361\n171\n")),
    ("DISK-FULL", lambda source, _: os.truncate(source / TRAIN, 1 << 43)),
    ("DATA-TARGET", lambda _, image: Path(f"{image}.partial").mkdir(parents=True)),
]


@pytest.mark.parametrize(("code", "hinder"), HINDRANCES)
def test_a_preparation_that_cannot_succeed_is_refused_before_anything_is_written(
    nodes: Nodes, source: Path, code: str, hinder: Callable[[Path, Path], object]
) -> None:
    image = nodes.folder / "node1/image"
    nodes.write("node1", imagenet=str(image))
    hinder(source, image)
    said = nodes.json("prepare", "imagenet", "--from", str(source), code=5)
    assert states(said) == {"node1": "refused"}
    assert codes(said) == {("error", code)}
    assert files(nodes.folder) == 0


@prepares
def test_the_failure_of_one_node_does_not_stop_the_others(nodes: Nodes, tmp_path: Path) -> None:
    """A cut tar is an error of its node, with its log; other tars do not continue the work."""
    good, bad = (imagenet_tars(tmp_path / name) for name in ("good", "bad"))
    os.truncate(bad / TRAIN, 15_000)
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    nodes.json("prepare", "imagenet", "--from", str(good), "--nodes", "node1")
    said = nodes.json("prepare", "imagenet", "--from", str(bad), code=5)
    assert states(said) == {"node1": "there", "node2": "failed"}
    (error,) = said["errors"]
    assert (error["code"], error["node"]) == ("SOURCE-DAMAGED", "node2")
    assert not (nodes.folder / "node2/image").exists()
    log = nodes.place.state / "data/imagenet/node2.log"
    assert "dlperf problem SOURCE-DAMAGED" in log.read_text()
    again = nodes.json("prepare", "imagenet", "--from", str(good), code=5)
    assert again["errors"][0]["code"] == "SOURCE-CHANGED"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Return a folder with tars of so many classes that their extraction can be interrupted."""
    return imagenet_tars(tmp_path / "from", classes=MANY, images=1)


def begin(nodes: Nodes, source: Path, image: Path) -> "subprocess.Popen[str]":
    """Start a preparation; wait until some classes are in their places."""
    words = ("--inventory", "pair", "--from", str(source))
    running = nodes.place.start("data", "prepare", "imagenet", *words)
    train = Path(f"{image}.partial") / "set/train"
    wait_for(lambda: train.is_dir() and len(list(train.iterdir())) > 3, "a few classes")
    return running


@prepares
def test_ctrl_c_ends_the_work_and_the_next_run_continues_it(nodes: Nodes, many: Path) -> None:
    """Exit 130, and no process is left; classes in their places are not extracted again."""
    image = nodes.folder / "node1/image"
    nodes.write("node1", imagenet=str(image))
    running = begin(nodes, many, image)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=30)[1]
    assert running.returncode == 130
    assert "Fix: run the same command to resume." in said
    assert nodes.pids() == []
    train = Path(f"{image}.partial") / "set/train"
    before = {path.name: path.stat().st_ino for path in train.iterdir()}
    assert 3 < len(before) < len(MANY)
    assert states(nodes.json("prepare", "imagenet", "--from", str(many))) == {"node1": "prepared"}
    assert {name: (image / "train" / name).stat().st_ino for name in before} == before
    assert files(image) == len(MANY) + 5


@prepares
@pytest.mark.parametrize("unseen", [False, True], ids=["at-work", "ended-unseen"])
def test_work_outlives_its_controller_and_is_found_again(
    nodes: Nodes, many: Path, *, unseen: bool
) -> None:
    """After SIGKILL it continues; the next run watches it, or takes what it left."""
    image = nodes.folder / "node1/image"
    nodes.write("node1", imagenet=str(image))
    running = begin(nodes, many, image)
    running.kill()
    running.wait()
    assert nodes.pids()
    words = ["--from", str(many)]
    if unseen:
        wait_for(lambda: not nodes.pids(), "the end of the work")
        shutil.rmtree(many)
        words = []
    else:
        found = nodes.place.must("clean", "--inventory", "pair", "--dry-run").stderr
        seen = f"is being prepared on the node, by pid {running.pid}"
        assert f"PREPARING node1: data set imagenet {seen}" in found
    said = nodes.json("prepare", "imagenet", *words)
    assert states(said) == {"node1": "prepared"}
    assert said["nodes"]["node1"]["message"].startswith("found at work")
    assert files(image) == len(MANY) + 5


@prepares
def test_work_whose_folder_is_removed_is_reported_as_stopped(nodes: Nodes, many: Path) -> None:
    """Exit 5; no process is left, and the next run continues."""
    image = nodes.folder / "node1/image"
    nodes.write("node1", imagenet=str(image))
    running = begin(nodes, many, image)
    shutil.rmtree(nodes.folder / "node1-work/prepare", ignore_errors=True)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 5
    assert "ERROR STOPPED node=node1: ended before it was done" in said
    assert nodes.pids() == []
    assert states(nodes.json("prepare", "imagenet", "--from", str(many))) == {"node1": "prepared"}


@pytest.mark.parametrize(
    ("name", "count"), [("wiki_ofrecord", 32), ("imagenet_ofrecord", 256), ("gpt", 2)]
)
@prepares
def test_ready_made_files_are_put_into_their_place(
    nodes: Nodes, tmp_path: Path, name: str, count: int
) -> None:
    """As many as upstream has: there is no finding."""
    source = tmp_path / "from"
    if name == "gpt":
        source.mkdir()
        for kind in ("bin", "idx"):
            (source / f"gpt_sample_dataset_text_document.{kind}").write_bytes(b"tokens")
    else:
        parts(source, count, digits=5 if name == "imagenet_ofrecord" else 0)
    nodes.write(**{name: f"{nodes.folder}/{{node}}/{name}"})
    said = nodes.json("prepare", name, "--from", str(source))
    assert states(said) == {"node1": "prepared", "node2": "prepared"}
    assert said["findings"] == []
    assert said["held"]["node2"]["files"] == count


@prepares
def test_files_with_a_gap_do_not_get_the_name(nodes: Nodes, tmp_path: Path) -> None:
    """A program would fail on the missing file; completed sources are accepted."""
    source = tfrecords(tmp_path / "from", train=3)
    (source / "train-00001-of-00003").rename(tmp_path / "train-00001-of-00003")
    nodes.write("node1", imagenet_tfrecord=f"{nodes.folder}/{{node}}/tf")
    said = nodes.json("prepare", "imagenet_tfrecord", "--from", str(source), code=5)
    assert said["errors"][0]["code"] == "DATA-PARTS"
    assert "lacks train-00001-of-00003" in said["errors"][0]["message"]
    assert not (nodes.folder / "node1/tf").exists()
    (tmp_path / "train-00001-of-00003").rename(source / "train-00001-of-00003")
    said = nodes.json("prepare", "imagenet_tfrecord", "--from", str(source))
    assert states(said) == {"node1": "prepared"}
    assert files(nodes.folder / "node1/tf") == 5


def behind(server: Sshd, nodes: Nodes) -> Path:
    """Write the inventory of one node behind an sshd; return the place of its data set."""
    (nodes.place.folder / "inventory/pair.yaml").write_text(
        "name: pair\n"
        f"defaults: {{known_hosts: {server.known_hosts}, runtime: process,"
        f" user: {getpass.getuser()}}}\n"
        f"nodes:\n  - {{name: vs001, address: {server.address}, port: {server.port},"
        f" identity: {server.identity}, folder: {nodes.folder}/work,"
        f" data: {{imagenet: {nodes.folder}/image}}}}\n"
    )
    return nodes.folder / "image"


@pytest.mark.daemons
@prepares
def test_a_lost_connection_does_not_end_the_work(nodes: Nodes, server: Sshd, many: Path) -> None:
    """Through real ssh: the sessions are killed, and the preparation ends well."""
    image = behind(server, nodes)
    running = begin(nodes, many, image)
    server.kill_sessions()
    said = running.communicate(timeout=90)[1]
    assert running.returncode == 0, said
    assert files(image) == len(MANY) + 5
    assert image.stat().st_mode & 0o777 == 0o755
    assert nodes.json("check", "imagenet")["held"]["vs001"]["files"] == len(MANY) + 5


@pytest.mark.daemons
@prepares
def test_work_on_a_silent_node_continues_and_is_found_again(
    nodes: Nodes, server: Sshd, many: Path
) -> None:
    """Ctrl-C does not wait longer for it than for any silent node."""
    image = behind(server, nodes)
    running = begin(nodes, many, image)
    server.stop()
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert "ERROR UNREACHABLE node=vs001" in said
    assert "it keeps running there" in said
    wait_for(lambda: not nodes.pids(), "the end of the work")
    server.start()
    found = nodes.json("prepare", "imagenet", "--from", str(many))
    assert found["nodes"]["vs001"]["message"].startswith("found at work")
    assert files(image) == len(MANY) + 5
