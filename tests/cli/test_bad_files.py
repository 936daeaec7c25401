"""Inventories, playbooks and images that are wrong, or do not fit each other."""

import pytest
from syrupy.assertion import SnapshotAssertion

from tests import ROOT
from tests.cli.bad_files import BAD, IMAGE, INVENTORY, KINDS, PLAYBOOK, Bad
from tests.cli.here import Here

LISTED = INVENTORY.replace("registry:", "images: [reference-rn50]\nregistry:")
NGC = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 1, iterations: 100, window: [20, 60]}
grid: {placement: [1x1, 2x8], precision: [fp32], micro_batch_size: [128]}
"""
NGC_LISTED = LISTED.replace("reference-rn50", "ngc-pytorch-20.03")
TF = (ROOT / "playbooks/tf-rn50-fp32.yaml").read_text().replace("2x8, 4x8", "2x8")
TF_LISTED = LISTED.replace("reference-rn50", "ngc-tensorflow-20.03").replace(
    "/data/image", "/data/image, imagenet_tfrecord: /data/records, dali_idx: /data/idx"
)
SLURM = """\
name: queue
scheduler: slurm
slurm: {time: "01:00:00", nodes: 2}
defaults: {runtime: process, gpus: {count: 8}}
"""
BY_TAG = "nvcr.io/nvidia/pytorch@25.09-py3"
SEVEN = """\
nmae: lab
defaults:
  port: '22'
  gpus: {count: 0}
  transport: shh
nodes:
  - {name: x, address: 10.0.0.1}
  - {name: node2, gpu: 8}
"""


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_bad_file_is_refused_where_it_is_bad(bare: Here, bad: Bad) -> None:
    """One line has the file, line, column and what was needed; secrets are not repeated."""
    (bare.folder / "bad.yaml").write_bytes(bad.content.encode())
    ended = bare("check", "bad.yaml", code=2)
    (line,) = ended.err.splitlines()
    assert line.startswith(f"bad.yaml:{bad.place[0]}:{bad.place[1]}: ")
    assert bad.words in line
    assert "hunter2" not in line
    assert ended.out == ""


def test_good_files_are_good(bare: Here) -> None:
    """The files that the table of bad ones starts from have no fault, and nothing is written."""
    for kind, good in {**KINDS, "inventory": LISTED}.items():
        bare.write(f"{kind}.yaml", good)
    names = sorted(f"{kind}.yaml" for kind in KINDS)
    document = bare("check", "--json", *names, code=0).document
    assert document == {"exit_code": 0, "files": {f"{kind}.yaml": kind for kind in sorted(KINDS)}}
    assert bare("check", "playbook.yaml", code=0).err == ""
    assert sorted(path.name for path in bare.folder.iterdir()) == names


@pytest.mark.parametrize(
    ("good", "key", "wrong"),
    [
        (INVENTORY, "nodes", "node"),
        (PLAYBOOK, "workload", "workloads"),
        (PLAYBOOK, "workload", "worklaod"),
        (IMAGE, "base", "bsae"),
    ],
)
def test_the_key_that_decides_a_files_kind_may_be_misspelt(
    bare: Here, good: str, key: str, wrong: str
) -> None:
    bad = f"\n{good}".replace(f"\n{key}:", f"\n{wrong}:", 1).removeprefix("\n")
    line = bad.partition(f"{wrong}:")[0].count("\n") + 1
    bare.write("x.yaml", bad)
    needed = f"x.yaml:{line}:1: {wrong}: unknown key {wrong!r}; did you mean {key!r}?"
    assert needed in bare("check", "x.yaml").err


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"lab.yaml": SEVEN}, id="all mistakes of a file"),
        pytest.param(
            {"pb.yaml": PLAYBOOK.replace(": 5", ": 0").replace("[20, 120]", "[120, 20]")},
            id="values and the rules between them",
        ),
        pytest.param(
            {
                "pb.yaml": PLAYBOOK.replace("rn50", "rm50").replace("local", "nowhere"),
            },
            id="all unknown names",
        ),
        pytest.param(
            {
                "one.yaml": PLAYBOOK.replace("inventory: local\n", ""),
                "lab.yaml": INVENTORY,
                "two.yaml": PLAYBOOK.replace("inventory: local\n", ""),
            },
            id="two playbooks on an inventory that lacks their image",
        ),
        pytest.param(
            {
                "two.yaml": PLAYBOOK.replace("repeats: 5", "repeats: 0"),
                "good.yaml": IMAGE,
                "one.yaml": INVENTORY.replace("port: 22", "port: 0"),
                "three.yaml": "name: x\n\tbase: y\n",
            },
            id="several files",
        ),
        pytest.param(
            {f"{name}.yaml": PLAYBOOK for name in ("$(id)", "x", "-rf", "n" * 64)}, id="file names"
        ),
        pytest.param(
            {"lab.yaml": INVENTORY, "more.yaml": INVENTORY, "one.yaml": PLAYBOOK},
            id="two inventories",
        ),
        pytest.param(
            {
                "near.yaml": INVENTORY.partition("  - ")[0]
                + "  - {name: node1, address: 127.0.0.1, port: 2201}\n"
                + "  - {name: node2, address: 127.0.0.1, port: 2202}\n"
            },
            id="nodes that differ by port",
        ),
    ],
)
def test_all_files_are_judged_in_one_call(
    bare: Here, files: dict[str, str], snapshot: SnapshotAssertion
) -> None:
    for name, text in files.items():
        bare.write(name, text)
    said = bare.session("check " + " ".join(f"'./{name}'" for name in files))
    assert said == snapshot
    document = bare("check", "--json", *(f"./{name}" for name in files)).document
    for error in document.get("errors", ()):
        place = f"{error['file']}:{error['line']}:{error['column']}: "
        path = f"{error['path']}: " if error["path"] else ""
        assert f"\n{place}{path}{error['message']}\n" in said
        assert (error["code"], error["fix"]) == ("CONFIG", "correct the file")
        assert error["where"] == {"file": error["file"], "line": error["line"]}


def test_key_that_others_may_read_is_refused(bare: Here) -> None:
    """B23: the place of `identity`, the key's mode, and what to do; with mode 0600 it is fine."""
    key = bare.write(".ssh/bench_key", "a key\n")
    key.chmod(0o640)
    bare.write("lab.yaml", INVENTORY)
    needed = "others may use the key ~/.ssh/bench_key (mode 0640); needed chmod 600"
    assert bare("check", "lab.yaml", code=2).err == f"lab.yaml:8:13: defaults.identity: {needed}\n"
    key.chmod(0o600)
    bare("check", "lab.yaml", code=0)


PAIRS = {
    "fits": (LISTED, PLAYBOOK),
    "fits by tag": (
        LISTED.replace("reference-rn50", BY_TAG),
        PLAYBOOK.replace("reference-rn50", BY_TAG),
    ),
    "nodes": (LISTED, PLAYBOOK.replace("2x2]", "2x2, 4x8]")),
    "nodes of Slurm": (SLURM, PLAYBOOK.replace("2x2]", "3x8]")),
    "GPUs and nodes": (LISTED, PLAYBOOK.replace("1x2, 2x2]", "1x9, 4x8]")),
    "GPUs in use": (LISTED.replace("{count: 8}", "{count: 8, use: [0]}"), PLAYBOOK),
    "ranks": (LISTED, PLAYBOOK.replace("[4, 8]", "[4, 8]\n  tensor_parallel: [2]")),
    "parameters": (
        NGC_LISTED,
        PLAYBOOK.replace("reference_rn50", "ngc_pytorch_rn50").replace(
            "reference-rn50", "ngc-pytorch-20.03"
        ),
    ),
    "data": (NGC_LISTED.replace("imagenet:", "imagnet:"), NGC),
    "image": (INVENTORY, PLAYBOOK),
    "image of the inventory without a program": (
        LISTED.replace("[reference-rn50]", "[nvcr.io/nvidia/none@1, reference-rm50]"),
        PLAYBOOK,
    ),
    "image of the playbook without a program": (
        LISTED,
        PLAYBOOK.replace("reference-rn50", "nvcr.io/nvidia/none@1"),
    ),
    "program in the container alone": (
        TF_LISTED.replace("user: root", "user: root\n  runtime: process"),
        TF,
    ),
    "program that this machine lacks": (
        NGC_LISTED.replace("user: root", "transport: local\n  runtime: process"),
        NGC + "device: cuda\n",
    ),
    "interfaces": (TF_LISTED.replace("10.0.0.2}", "10.0.0.2, interface: eno1}"), TF),
    "variables": (
        LISTED + "env: {OMP_NUM_THREADS: 3}\n",
        PLAYBOOK.replace("device: cuda", "device: cpu"),
    ),
    "image of another workload": (LISTED, NGC.replace("ngc-pytorch-20.03", "reference-rn50")),
}


@pytest.mark.parametrize("name", PAIRS)
def test_check_and_a_dry_run_refuse_what_a_cluster_cannot_run(
    bare: Here, name: str, snapshot: SnapshotAssertion
) -> None:
    """Each mistake has its file, line and column; nothing is written (X9, B17, B18)."""
    inventory, playbook = PAIRS[name]
    bare.write("lab.yaml", inventory)
    bare.write("pb.yaml", playbook.replace("inventory: local\n", ""))
    dry = bare("sweep", "pb.yaml", "--inventory", "lab.yaml", "--dry-run")
    shown = f"as a dry run:\n{dry.err}[{dry.code}]\n".replace(str(ROOT), "ROOT")
    assert bare.session("check lab.yaml pb.yaml") + shown == snapshot
    assert (dry.code, dry.out == "") in ((0, False), (2, True))
    assert sorted(path.name for path in bare.folder.iterdir()) == ["lab.yaml", "pb.yaml"]


@pytest.mark.parametrize(
    ("playbook", "refused"),
    [("oneflow-rn50-fp32", True), ("tf-rn50-amp", True), ("rn50-amp", False)],
)
def test_launchers_without_ipv6_are_refused(bare: Here, playbook: str, *, refused: bool) -> None:
    """X5: an inventory with IPv6 addresses is refused before anything is touched."""
    text = INVENTORY.partition("registry:")[0].replace(
        "/data/image", "/a, imagenet_tfrecord: /b, dali_idx: /c, imagenet_ofrecord: /d"
    )
    text += "images: [ngc-pytorch-20.03, ngc-tensorflow-20.03, oneflow-0.1.9]\nnodes:\n"
    text += "".join(f'  - {{name: node{n}, address: "fd00:11::{n}"}}\n' for n in range(1, 5))
    bare.write("six.yaml", text)
    ended = bare("check", playbook, "six.yaml", code=2 if refused else 0)
    assert ("takes no IPv6 addresses, as fd00:11::1" in ended.err) == refused


def test_images_serve_the_workloads_that_they_name(here: Here, snapshot: SnapshotAssertion) -> None:
    """An image that names no workload serves any; so does any image a workload of no image."""
    rest = "method: {repeats: 1, iterations: 20, window: [5, 15]}\ndevice: cpu\n"
    rest += "grid: {placement: [1x1], precision: [fp32], micro_batch_size: [4]}\n"
    here.write("mine.yaml", f"workload: reference_rn50\nimage: mine\n{rest}")
    here.write("toy.yaml", f"workload: toy\nimage: reference-rn50\n{rest}")
    here.write("images/toy/image.yaml", "name: toy\nbase: registry.example/toy:1\n")
    here.write("images/mine/image.yaml", "name: mine\nbase: registry.example/mine:1\n")
    said = here.session("check mine.yaml toy.yaml")
    here.edit("images/mine/image.yaml", "mine:1", "mine:1\nworkloads: [referenc_rn50]")
    assert said + here.session("check images/mine/image.yaml") == snapshot


def test_a_newer_tag_is_one_line_of_a_playbook(bare: Here, snapshot: SnapshotAssertion) -> None:
    """NAME@TAG is that image on another base; a base that comes as a file has no tags."""
    words = "sweep newer.yaml --inventory v100x4 --dry-run --json"
    text = NGC.replace("fp32", "amp")
    bare.write("newer.yaml", text.replace("20.03", "20.03@20.12-py3"))
    plan = bare(*words.split(), code=0).document["plan"]
    assert (plan["image"], len(plan["trials"])) == ("ngc-pytorch-20.03@20.12-py3", 2)
    bare.write("newer.yaml", text.replace("ngc-pytorch-20.03", "oneflow-gpt-0.3.5@0.2"))
    said = bare.session(words.removesuffix(" --json"))
    bare.write("newer.yaml", text.replace("20.03", "20.3@20.12-py3"))
    assert said + bare.session("check newer.yaml") == snapshot


def test_check_takes_names_as_other_commands_do(here: Here, snapshot: SnapshotAssertion) -> None:
    """A name may mean several files; a name that nobody has is a file that is missing."""
    assert here("check", "h100x2", "ngc-pytorch-20.03", code=0).out.count("a valid ") == 2
    assert here.session("check toy two", "check nosuch") == snapshot
