"""Bad inventories, playbooks and image files, each refused by the real command line."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import commands, warm
from tests.cli.bad_files import BAD, IMAGE, INVENTORY, KINDS, PLAYBOOK, Bad
from tests.conftest import PROGRAM


def dlperf(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """The command line, run in a folder with a home of its own."""
    env = commands.environment(HOME=str(folder), COLUMNS="200", **(env or {}))
    return commands.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=env,
        timeout_s=60,
    )


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, warm.Ended]:
    """What `check` says of each bad file, each in a process of its own."""
    folder = tmp_path_factory.mktemp("bad")
    for bad in BAD:
        (folder / f"{bad.name}.yaml").write_bytes(bad.content.encode())
    lines = [("check", f"{bad.name}.yaml") for bad in BAD]
    ended = warm.commands(lines, folder, {"HOME": str(folder), "COLUMNS": "200"})
    return dict(zip((bad.name for bad in BAD), ended, strict=True))


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_bad_file_is_refused_where_it_is_bad(answers: Mapping[str, warm.Ended], bad: Bad) -> None:
    """Exit 2, one line on standard error with file, line, column and what was needed, no more."""
    code, out, err = answers[bad.name]
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith(f"{bad.name}.yaml:{bad.place[0]}:{bad.place[1]}: ")
    assert bad.words in line
    assert "hunter2" not in line
    assert "Traceback" not in line


def test_good_files_are_good(tmp_path: Path) -> None:
    """What the table starts from has no fault of its own; nothing is written beside it."""
    for good, kind in KINDS.items():
        text = good.replace("registry:", "images: [reference-rn50]\nregistry:")
        (tmp_path / f"{kind}.yaml").write_text(text)
    names = [f"{kind}.yaml" for kind in KINDS.values()]
    said = dlperf(tmp_path, "check", "--json", *names)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == {
        "exit_code": 0,
        "files": {f"{kind}.yaml": kind for kind in KINDS.values()},
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_nodes_behind_one_address_are_told_by_their_ports(tmp_path: Path) -> None:
    """B10, B11: address and port make a node; loopback is fine where all nodes are on it."""
    nodes = "  - {name: node1, address: 127.0.0.1, port: 2201}\n"
    nodes += "  - {name: node2, address: 127.0.0.1, port: 2202}\n"
    (tmp_path / "near.yaml").write_text(INVENTORY.partition("  - ")[0] + nodes)
    assert dlperf(tmp_path, "check", "near.yaml").returncode == 0


def test_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """B23: the place of `identity`, the key's mode, and what to do; with mode 0600 it is fine."""
    (tmp_path / ".ssh").mkdir()
    key = tmp_path / ".ssh" / "bench_key"
    key.write_text("a key\n")
    key.chmod(0o640)
    (tmp_path / "lab.yaml").write_text(INVENTORY)
    said = dlperf(tmp_path, "check", "lab.yaml")
    needed = "others may use the key ~/.ssh/bench_key (mode 0640); needed chmod 600"
    assert (said.returncode, said.stderr) == (2, f"lab.yaml:8:13: defaults.identity: {needed}\n")
    key.chmod(0o600)
    assert dlperf(tmp_path, "check", "lab.yaml").returncode == 0


@pytest.mark.parametrize("name", ["$(id)", "x", "n" * 64, "-rf"])
def test_playbook_with_an_unfit_file_name_is_refused(tmp_path: Path, name: str) -> None:
    """B12 to B15: a playbook's file name becomes part of folders and of names on the nodes."""
    (tmp_path / f"{name}.yaml").write_text(PLAYBOOK)
    said = dlperf(tmp_path, "check", f"./{name}.yaml")
    assert said.returncode == 2
    assert f"{name}.yaml:1:1: the file's name is " in said.stderr
    assert "needed 2 to 63 letters" in said.stderr


@pytest.mark.parametrize(
    ("good", "key", "wrong"),
    [
        (INVENTORY, "nodes", "node"),
        (PLAYBOOK, "workload", "workloads"),
        (PLAYBOOK, "workload", "worklaod"),
        (IMAGE, "base", "bsae"),
    ],
)
def test_the_key_that_tells_a_files_kind_may_be_misspelt(
    tmp_path: Path, good: str, key: str, wrong: str
) -> None:
    """X18: what was meant is asked at its line, since the other keys tell what the file is."""
    bad = f"\n{good}".replace(f"\n{key}:", f"\n{wrong}:", 1).removeprefix("\n")
    line = next(number for number, text in enumerate(bad.split("\n"), 1) if f"{wrong}:" in text)
    (tmp_path / "x.yaml").write_text(bad)
    said = dlperf(tmp_path, "check", "x.yaml").stderr
    assert f"x.yaml:{line}:1: {wrong}: unknown key {wrong!r}; did you mean {key!r}?" in said


SEVEN = """nmae: lab
defaults:
  port: '22'
  gpus: {count: 0}
  transport: shh
nodes:
  - {name: x, address: 10.0.0.1}
  - {name: node2, gpu: 8}
"""


def test_all_mistakes_of_a_file_come_at_once(tmp_path: Path) -> None:
    """One run shows everything that there is to correct, in the order of the file."""
    (tmp_path / "lab.yaml").write_text(SEVEN)
    said = dlperf(tmp_path, "check", "lab.yaml")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.splitlines() == [
        "lab.yaml:1:1: key 'name' is missing",
        "lab.yaml:1:1: nmae: unknown key 'nmae'; did you mean 'name'?",
        "lab.yaml:3:9: defaults.port: got '22'; needed a valid integer",
        "lab.yaml:4:17: defaults.gpus.count: got 0; needed at least 1",
        "lab.yaml:5:14: defaults.transport: got 'shh'; needed 'ssh' or 'local';"
        " did you mean 'ssh'?",
        "lab.yaml:7:12: nodes[0].name: got 'x'; needed 2 to 63 letters, digits, '_', '.' or '-',"
        " beginning with a letter or digit",
        "lab.yaml:8:5: nodes[1]: key 'address' is missing",
        "lab.yaml:8:19: nodes[1].gpu: unknown key 'gpu'; did you mean 'gpus'?",
    ]


IMPOSSIBLE = """workload: reference_rm50
image: reference-rm50
inventory: nowhere
method: {repeats: 5, iterations: 121, window: [120, 20]}
grid: {placement: [1x1], micro_batch_size: [4], precision: [fp32]}
"""


def test_everything_that_contradicts_itself_comes_at_once(tmp_path: Path) -> None:
    """Values of the file itself first; once they hold, all names that are unknown."""
    places = []
    for text in (IMPOSSIBLE, IMPOSSIBLE.replace("[120, 20]", "[20, 120]")):
        (tmp_path / "pb.yaml").write_text(text)
        said = dlperf(tmp_path, "check", "pb.yaml").stderr
        places.append([line.split(": ")[0] for line in said.splitlines()])
    assert places == [["pb.yaml:4:47"], [f"pb.yaml:{place}" for place in ("1:11", "2:8", "3:12")]]


def test_several_files_are_judged_in_one_call(tmp_path: Path) -> None:
    """Mistakes about all bad files, by their names; a good one among them is called good."""
    (tmp_path / "one.yaml").write_text(INVENTORY.replace("port: 22", "port: 0"))
    (tmp_path / "two.yaml").write_text(PLAYBOOK.replace("repeats: 5", "repeats: 0"))
    (tmp_path / "good.yaml").write_text(IMAGE)
    said = dlperf(tmp_path, "check", "two.yaml", "good.yaml", "one.yaml")
    assert (said.returncode, said.stdout) == (2, "good.yaml: a valid image\n")
    assert said.stderr.splitlines() == [
        "one.yaml:4:9: defaults.port: got 0; needed at least 1",
        "two.yaml:6:12: method.repeats: got 0; needed at least 1",
    ]


def test_mistakes_are_json_where_that_was_asked_for(tmp_path: Path) -> None:
    """One document on standard output, with the numbers that an editor needs."""
    (tmp_path / "one.yaml").write_text(INVENTORY.replace("port: 22", "prot: 22"))
    (tmp_path / "two.yaml").write_text("name: x\n\tbase: y\n")
    said = dlperf(tmp_path, "check", "--json", "one.yaml", "two.yaml")
    assert said.returncode == 2
    assert json.loads(said.stdout) == {
        "exit_code": 2,
        "errors": [
            {
                "code": "CONFIG",
                "file": "one.yaml",
                "line": 4,
                "column": 3,
                "path": "defaults.prot",
                "message": "unknown key 'prot'; did you mean 'port'?",
                "fix": "correct the file",
                "where": {"file": "one.yaml", "line": 4},
            },
            {
                "code": "CONFIG",
                "file": "two.yaml",
                "line": 2,
                "column": 1,
                "path": "",
                "message": "found a tab character that violates indentation while scanning a plain"
                " scalar; needed YAML, indented by spaces; put text with its signs in quotes",
                "fix": "correct the file",
                "where": {"file": "two.yaml", "line": 2},
            },
        ],
    }


@pytest.mark.parametrize(
    "command",
    [
        ("provision", "bad-lab.yaml"),
        ("provision", "--dry-run", "bad-lab.yaml"),
        ("sweep", "bad-pb.yaml", "--inventory", "local"),
        ("sweep", "--dry-run", "bad-pb.yaml", "--inventory", "local"),
        ("sweep", "smoke", "--inventory", "bad-lab.yaml"),
        ("sweep", "smoke", "--inventory", "absent.yaml"),
        ("sweep", "n" * 300),
        ("sweep", "smok"),
    ],
    ids=" ".join,
)
def test_command_on_a_bad_file_touches_nothing(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Exit 2 before anything is asked, started or written, the state folder among it."""
    (tmp_path / "bad-lab.yaml").write_text(INVENTORY.replace("port: 22", "port: 0"))
    (tmp_path / "bad-pb.yaml").write_text(PLAYBOOK.replace("repeats: 5", "repeats: 0"))
    said = dlperf(tmp_path, *command)
    assert (said.returncode, said.stdout) == (2, "")
    assert ("needed at least 1" in said.stderr) == any("bad-" in word for word in command)
    assert "Traceback" not in said.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad-lab.yaml", "bad-pb.yaml"]


HAS = "needed one of loss_scale, data_backend"


@pytest.mark.parametrize(
    ("old", "new", "mistakes"),
    [
        (
            "1x2, 2x2]",
            "1x2, 3x2]",
            [("11:25", "3x2 asks for 3 nodes; inventory lab has 2; `--case` runs the others")],
        ),
        (
            "1x2, 2x2]",
            "1x9, 4x8]",
            [
                ("11:20", "1x9 asks for 9 GPUs; inventory lab lets node1 use at most 8"),
                ("11:25", "4x8 asks for 4 nodes; inventory lab has 2; `--case` runs the others"),
            ],
        ),
        (
            "[4, 8]",
            "[4, 8]\n  tensor_parallel: [2]",
            [
                ("11:15", "1x1: 1 ranks cannot be split into tensor 2 x pipeline 1"),
                ("11:15", "1x1: tensor_parallel 2; workload reference_rn50 can only do 1"),
                ("11:20", "1x2: tensor_parallel 2; workload reference_rn50 can only do 1"),
                ("11:25", "2x2: tensor_parallel 2; workload reference_rn50 can only do 1"),
            ],
        ),
        (
            "reference_rn50",
            "ngc_pytorch_rn50",
            [
                ("15:15", f"unknown key 'image_size'; {HAS}"),
                ("16:18", f"unknown key 'memory_format'; {HAS}"),
            ],
        ),
    ],
    ids=["nodes", "GPUs and nodes", "ranks", "workload"],
)
def test_experiment_that_the_cluster_cannot_run_is_refused(
    tmp_path: Path, old: str, new: str, mistakes: list[tuple[str, str]]
) -> None:
    """B17, B18: each placement that cannot be is named in its own place in the playbook."""
    (tmp_path / "lab.yaml").write_text(INVENTORY)
    (tmp_path / "pb.yaml").write_text(PLAYBOOK.replace(old, new))
    said = dlperf(tmp_path, "sweep", "pb.yaml", "--dry-run", "--inventory", "lab.yaml")
    assert (said.returncode, said.stdout) == (2, "")
    found = [line.split(": ", 2) for line in said.stderr.splitlines()]
    assert [(place.removeprefix("pb.yaml:"), text) for place, _, text in found] == mistakes


@pytest.mark.parametrize(
    ("playbook", "refused"),
    [("oneflow-rn50-fp32", True), ("tf-rn50-amp", True), ("rn50-amp", False)],
)
def test_check_refuses_launchers_on_addresses_that_they_do_not_know(
    tmp_path: Path, playbook: str, *, refused: bool
) -> None:
    """X5: of an IPv6 inventory beside the playbook, before anything is touched."""
    text = INVENTORY.partition("registry:")[0].replace(
        "/data/image", "/a, imagenet_tfrecord: /b, dali_idx: /c, imagenet_ofrecord: /d"
    )
    text += "images: [ngc-pytorch-20.03, ngc-tensorflow-20.03, oneflow-0.1.9]\nnodes:\n"
    text += "".join(f'  - {{name: node{n}, address: "fd00:11::{n}"}}\n' for n in range(1, 5))
    (tmp_path / "six.yaml").write_text(text)
    said = dlperf(tmp_path, "check", playbook, "six.yaml")
    assert said.returncode == (2 if refused else 0)
    assert ("takes no IPv6 addresses, as fd00:11::1" in said.stderr) == refused


def test_experiment_that_the_cluster_can_run_is_planned(tmp_path: Path) -> None:
    """The same playbook without its faults: six cases of five repeats, and nothing is written."""
    (tmp_path / "lab.yaml").write_text(INVENTORY)
    (tmp_path / "pb.yaml").write_text(PLAYBOOK)
    said = dlperf(tmp_path, "sweep", "pb.yaml", "--dry-run", "--inventory", "lab.yaml", "--json")
    assert said.returncode == 0, said.stderr
    assert len(json.loads(said.stdout)["plan"]["trials"]) == 30
    assert not (tmp_path / ".dlperf").exists()


TWICE_WRONG = PLAYBOOK.replace(": 5", ": 0").replace("[20, 120]", "[120, 20]")


def test_values_and_the_rules_between_them_come_at_once(tmp_path: Path) -> None:
    """A field out of its range hides no window that runs backwards."""
    places = []
    for text in (TWICE_WRONG, TWICE_WRONG.replace(": 0", ": 5")):
        (tmp_path / "pb.yaml").write_text(text)
        said = dlperf(tmp_path, "check", "pb.yaml").stderr
        places.append([line.split(": ")[0] for line in said.splitlines()])
    assert places == [["pb.yaml:6:12", "pb.yaml:8:11"], ["pb.yaml:8:11"]]
