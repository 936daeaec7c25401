"""Data sets on nodes: the command line, on this machine and through real sshds."""

import getpass
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.preparing_data.nodes import Nodes, codes
from tests.small_sets import CLASSES, imagenet_tars, jpeg, parts, tfrecords, valprep
from tests.sshd import Sshd
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
prepares = pytest.mark.usefixtures("machine_alone")  # while it does, nobody may sweep here
MANY = tuple(f"n{number:08}" for number in range(1, 401))


def files(folder: Path) -> int:
    """How many files lie below it."""
    return sum(path.is_file() for path in folder.rglob("*"))


def states(document: Any) -> dict[str, str]:
    """What came of each node."""
    return {name: node["state"] for name, node in document["nodes"].items()}


@prepares
def test_imagenet_comes_onto_every_node(nodes: Nodes, tmp_path: Path) -> None:
    """Classes in their places, counted; a small set is whole and said to be incomplete."""
    source = imagenet_tars(tmp_path / "from")
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


@prepares
def test_a_second_run_finds_everything_there(nodes: Nodes, tmp_path: Path) -> None:
    """Nothing is touched, and the set is looked at again."""
    source = imagenet_tars(tmp_path / "from")
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    nodes.json("prepare", "imagenet", "--from", str(source))
    image = nodes.folder / "node1/image"
    before = image.stat().st_ctime_ns
    said = nodes.json("prepare", "imagenet", "--from", str(source))
    assert states(said) == {"node1": "there", "node2": "there"}
    assert image.stat().st_ctime_ns == before
    assert said["held"]["node2"]["files"] == 17


@prepares
def test_what_lies_at_the_path_is_never_overwritten(nodes: Nodes, tmp_path: Path) -> None:
    """However broken; the other node gets its own, and the broken one is an error."""
    source = imagenet_tars(tmp_path / "from")
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    mine = nodes.folder / "node1/image/mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("x")
    said = nodes.json("prepare", "imagenet", "--from", str(source), code=5)
    assert states(said) == {"node1": "there", "node2": "prepared"}
    assert mine.read_text() == "x"
    assert ("error", "DATA-PARTS") in codes(said)
    assert ("error", "DATA-DIFF") in codes(said)


@prepares
def test_nodes_that_see_one_file_system_do_the_work_once(nodes: Nodes, tmp_path: Path) -> None:
    """The first prepares; the others are told where, and are looked at all the same."""
    source = imagenet_tars(tmp_path / "from")
    nodes.write(imagenet=f"{nodes.folder}/common/image")
    said = nodes.json("prepare", "imagenet", "--from", str(source))
    assert sorted(states(said).values()) == ["prepared", "shared"]
    assert set(said["held"]) == {"node1", "node2"}
    assert files(nodes.folder / "common") == 17


def test_a_dry_run_says_what_it_would_do(nodes: Nodes, tmp_path: Path) -> None:
    """And writes nothing."""
    source = imagenet_tars(tmp_path / "from")
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    said = nodes.json("prepare", "imagenet", "--from", str(source), "--dry-run")
    assert states(said) == {"node1": "ready", "node2": "ready"}
    assert "extracts ILSVRC2012's tars" in said["nodes"]["node1"]["what"]
    assert said["nodes"]["node1"]["needed_bytes"] > 64 << 20
    assert list(nodes.folder.iterdir()) == []
    shown = nodes.run("prepare", "imagenet", "--from", str(source), "--dry-run").stdout
    assert "extracts ILSVRC2012's tars" in shown


@pytest.mark.parametrize(
    ("removed", "code"),
    [("ILSVRC2012_img_val.tar", "DATA-SOURCE"), ("valprep.sh", "LABELS")],
)
def test_missing_sources_are_named_before_anything_is_written(
    nodes: Nodes, tmp_path: Path, removed: str, code: str
) -> None:
    """Both tars and the classes of validation images are the user's to give."""
    source = imagenet_tars(tmp_path / "from")
    (source / removed).unlink()
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    said = nodes.json("prepare", "imagenet", "--from", str(source), code=5)
    assert states(said) == {"node1": "refused", "node2": "refused"}
    assert codes(said) == {("error", code)}
    assert not (nodes.folder / "node1").exists()


@prepares
def test_labels_are_a_list_in_order_too(nodes: Nodes, tmp_path: Path) -> None:
    """A file that is no list of classes is refused before anything is written."""
    source = imagenet_tars(tmp_path / "from", validation=3)
    (source / "valprep.sh").write_text("490\n361\n171\n")
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    said = nodes.json("prepare", "imagenet", "--from", str(source), code=5)
    assert codes(said) == {("error", "LABELS")}
    (source / "valprep.sh").unlink()
    labels = source / "imagenet_2012_validation_synset_labels.txt"
    labels.write_text("n01484850\nn01440764\nn01443537\n")
    nodes.json("prepare", "imagenet", "--from", str(source))
    val = nodes.folder / "node1/image/val"
    assert (val / "n01484850/ILSVRC2012_val_00000001.JPEG").is_file()


@prepares
def test_one_nodes_failure_does_not_stop_the_others(nodes: Nodes, tmp_path: Path) -> None:
    """A tar that is cut on one node is named with the node; the other is done."""
    for name in ("node1", "node2"):
        imagenet_tars(tmp_path / f"from-{name}")
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    (tmp_path / "from-node1").rename(tmp_path / "good")
    train = tmp_path / "from-node2/ILSVRC2012_img_train.tar"
    train.write_bytes(train.read_bytes()[:15_000])
    blocker = nodes.folder / "node2"
    nodes.json("prepare", "imagenet", "--from", str(tmp_path / "good"), "--nodes", "node1")
    said = nodes.json("prepare", "imagenet", "--from", str(tmp_path / "from-node2"), code=5)
    assert states(said) == {"node1": "there", "node2": "failed"}
    (error,) = said["errors"]
    assert (error["code"], error["node"]) == ("SOURCE-DAMAGED", "node2")
    assert not (blocker / "image").exists()
    log = nodes.place.state / "data/imagenet/node2.log"
    assert "dlperf problem SOURCE-DAMAGED" in log.read_text()
    again = nodes.json("prepare", "imagenet", "--from", str(tmp_path / "good"), code=5)
    assert again["errors"][0]["code"] == "SOURCE-CHANGED"


def test_a_disk_without_room_is_refused_before_anything_is_written(
    nodes: Nodes, tmp_path: Path
) -> None:
    """DISK-FULL with both numbers; a tar of a thousand terabytes is a hole in a file."""
    source = imagenet_tars(tmp_path / "from")
    os.truncate(source / "ILSVRC2012_img_train.tar", 1 << 43)
    nodes.write(imagenet=f"{nodes.folder}/{{node}}/image")
    said = nodes.json("prepare", "imagenet", "--from", str(source), code=5)
    assert codes(said) == {("error", "DISK-FULL")}
    sized = re.compile(r"[0-9.]+ [MGT]iB free for ")
    assert all(sized.match(finding["seen"]) for finding in said["findings"])
    assert states(said) == {"node1": "refused", "node2": "refused"}
    assert not (nodes.folder / "node1").exists()


@prepares
def test_ctrl_c_ends_the_work_and_the_next_run_goes_on(nodes: Nodes, tmp_path: Path) -> None:
    """Exit 130, nothing runs any more; what has its place is not extracted again."""
    source = imagenet_tars(tmp_path / "from", classes=MANY, images=1)
    nodes.write("node1", imagenet=f"{nodes.folder}/{{node}}/image")
    words = ("--inventory", "pair", "--from", str(source))
    running = nodes.place.start("data", "prepare", "imagenet", *words)
    train = nodes.folder / "node1/image.partial/set/train"
    wait_for(lambda: train.is_dir() and len(list(train.iterdir())) > 3, "a few classes")
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    assert running.stderr is not None
    assert "Fix: run the same command to resume." in running.stderr.read()
    assert nodes.pids() == []
    before = {path.name: path.stat().st_ino for path in train.iterdir()}
    assert 3 < len(before) < len(MANY)
    said = nodes.json("prepare", "imagenet", *words[2:])
    assert states(said) == {"node1": "prepared"}
    image = nodes.folder / "node1/image"
    assert {name: (image / "train" / name).stat().st_ino for name in before} == before
    assert files(image) == len(MANY) + 5


@prepares
def test_work_outlives_its_controller_and_is_found_again(nodes: Nodes, tmp_path: Path) -> None:
    """After SIGKILL it goes on by itself; the next run watches it to its end."""
    source = imagenet_tars(tmp_path / "from", classes=MANY, images=1)
    nodes.write("node1", imagenet=f"{nodes.folder}/{{node}}/image")
    words = ("--inventory", "pair", "--from", str(source))
    running = nodes.place.start("data", "prepare", "imagenet", *words)
    train = nodes.folder / "node1/image.partial/set/train"
    wait_for(lambda: train.is_dir() and len(list(train.iterdir())) > 3, "a few classes")
    running.kill()
    running.wait()
    at_work = nodes.pids()
    assert at_work
    found = nodes.place.must("clean", "--inventory", "pair", "--dry-run").stderr
    assert (
        f"PREPARING node1: data set imagenet is being prepared on the node, by pid {running.pid}"
        in found
    )
    said = nodes.json("prepare", "imagenet", *words[2:])
    assert states(said) == {"node1": "prepared"}
    assert said["nodes"]["node1"]["message"].startswith("found at work")
    assert files(nodes.folder / "node1/image") == len(MANY) + 5


@prepares
def test_work_that_somebody_removes_is_called_stopped(nodes: Nodes, tmp_path: Path) -> None:
    """Exit 5 without a word of a tool; nothing runs any more, and the next run goes on."""
    source = imagenet_tars(tmp_path / "from", classes=MANY, images=1)
    nodes.write("node1", imagenet=f"{nodes.folder}/{{node}}/image")
    words = ("--inventory", "pair", "--from", str(source))
    running = nodes.place.start("data", "prepare", "imagenet", *words)
    train = nodes.folder / "node1/image.partial/set/train"
    wait_for(lambda: train.is_dir() and len(list(train.iterdir())) > 3, "a few classes")
    shutil.rmtree(nodes.folder / "node1-work/prepare", ignore_errors=True)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 5
    assert "ERROR STOPPED node=node1: ended before it was done" in said
    assert nodes.pids() == []
    assert states(nodes.json("prepare", "imagenet", *words[2:])) == {"node1": "prepared"}


@prepares
def test_work_that_ended_unseen_is_put_into_place(nodes: Nodes, tmp_path: Path) -> None:
    """Nothing is extracted a second time, and no --from is needed."""
    source = imagenet_tars(tmp_path / "from", classes=MANY[:100], images=1)
    nodes.write("node1", imagenet=f"{nodes.folder}/{{node}}/image")
    running = nodes.place.start(
        *("data", "prepare", "imagenet", "--inventory", "pair", "--from", str(source))
    )
    partial = nodes.folder / "node1/image.partial"
    wait_for(lambda: (partial / "set/train").is_dir(), "the first class")
    running.kill()
    running.wait()
    wait_for(lambda: not nodes.pids(), "the end of the work")
    shutil.rmtree(source)
    said = nodes.json("prepare", "imagenet")
    assert said["nodes"]["node1"]["message"].startswith("found at work")
    assert files(nodes.folder / "node1/image") == 105


def test_a_strangers_folder_is_left_alone(nodes: Nodes, tmp_path: Path) -> None:
    """`image.partial` of somebody else is named and not used."""
    source = imagenet_tars(tmp_path / "from")
    nodes.write("node1", imagenet=f"{nodes.folder}/{{node}}/image")
    strange = nodes.folder / "node1/image.partial"
    strange.mkdir(parents=True)
    (strange / "x").write_text("x")
    said = nodes.json("prepare", "imagenet", "--from", str(source), code=5)
    assert codes(said) == {("error", "DATA-TARGET")}
    assert [path.name for path in strange.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("name", "count"), [("wiki_ofrecord", 32), ("imagenet_ofrecord", 256), ("gpt", 2)]
)
@prepares
def test_ready_made_files_come_into_their_place(
    nodes: Nodes, tmp_path: Path, name: str, count: int
) -> None:
    """As many as upstream has: no finding at all."""
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
    """A program would fail on the missing one; completed sources are gone on with."""
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


def behind(server: Sshd, nodes: Nodes) -> None:
    """Write the inventory of one node behind an sshd."""
    (nodes.place.folder / "inventory/pair.yaml").write_text(
        "name: pair\n"
        f"defaults: {{known_hosts: {server.known_hosts}, runtime: process,"
        f" user: {getpass.getuser()}}}\n"
        f"nodes:\n  - {{name: vs001, address: {server.address}, port: {server.port},"
        f" identity: {server.identity}, folder: {nodes.folder}/work,"
        f" data: {{imagenet: {nodes.folder}/image}}}}\n"
    )


@pytest.mark.daemons
@prepares
def test_a_lost_connection_does_not_end_the_work(
    nodes: Nodes, server: Sshd, tmp_path: Path
) -> None:
    """Through real ssh: the sessions are killed; the preparation goes on and comes to its end."""
    source = imagenet_tars(tmp_path / "from", classes=MANY, images=1)
    behind(server, nodes)
    running = nodes.place.start(
        *("data", "prepare", "imagenet", "--inventory", "pair", "--from", str(source))
    )
    train = nodes.folder / "image.partial/set/train"
    wait_for(lambda: train.is_dir() and len(list(train.iterdir())) > 3, "a few classes")
    server.kill_sessions()
    assert running.wait(90) == 0, running.stderr.read() if running.stderr else ""
    image = nodes.folder / "image"
    assert files(image) == len(MANY) + 5
    assert image.stat().st_mode & 0o777 == 0o755
    assert nodes.json("check", "imagenet")["held"]["vs001"]["files"] == len(MANY) + 5


@pytest.mark.daemons
@prepares
def test_work_on_a_silent_node_goes_on_and_is_found_again(
    nodes: Nodes, server: Sshd, tmp_path: Path
) -> None:
    """Ctrl-C waits no longer for it than for any silent node; the next run finds the work."""
    source = imagenet_tars(tmp_path / "from", classes=MANY, images=1)
    behind(server, nodes)
    words = ("data", "prepare", "imagenet", "--inventory", "pair", "--from", str(source))
    running = nodes.place.start(*words)
    train = nodes.folder / "image.partial/set/train"
    wait_for(lambda: train.is_dir() and len(list(train.iterdir())) > 3, "a few classes")
    server.stop()
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert "ERROR UNREACHABLE node=vs001" in said
    assert "it keeps running there" in said
    wait_for(lambda: not nodes.pids(), "the end of the work")
    server.start()
    found = nodes.json("prepare", "imagenet", *words[5:])
    assert found["nodes"]["vs001"]["message"].startswith("found at work")
    assert files(nodes.folder / "image") == len(MANY) + 5


def test_the_generated_labels_are_those_of_the_script() -> None:
    """The sample of tests is the form that upstream's script has."""
    assert valprep(CLASSES, 1).splitlines()[-1] == "mv ILSVRC2012_val_00000001.JPEG n01440764/"
