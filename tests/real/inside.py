"""A person whose toy runs in containers of an image file, and what its tasks see in there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cluster import Cluster, layers, registry
from tests.people import PROGRAM, SLOW, STEP, Login
from tests.processes import wait_for

LOGS = "sweeps/*/attempts/*/a*/r0.log"
MARK = "etc/only-in-the-image"
LANG = "C.UTF-8"
INVENTORY = """\
name: queue
scheduler: slurm
slurm: {{partition: main, time: "01:00:00", nodes: 2}}
defaults: {{runtime: {runtime}, data: {{imagenet: /data/image}}}}
registry: {{mirror: '10.11.0.1:5000'}}
images: [toy]
"""
# Before the toy's own program: what a task sees, into the folder where it begins.
LOOK = f"""\
import json, os, sys
with open("seen.%s.json" % os.uname().nodename, "w") as file:
    json.dump({{
        "inside": os.path.exists("/{MARK}"),
        "folder": os.getcwd(),
        "env": dict(os.environ),
        "data": sorted(os.listdir("/data/imagenet")),
        "image": os.listdir("/dlperf"),
        "writable": [path for path in ("/", "/data/imagenet", "/dlperf", "/root")
                     if os.access(path, os.W_OK)],
        "home": os.listdir("/root"),
    }}, file)
if "EXIT_WITH" in os.environ:
    sys.exit(int(os.environ["EXIT_WITH"]))
"""


def provisioned(nodes: Cluster, runtime: str, **env: str) -> Login:
    """One whose images a registry has, and that has provisioned.

    Args:
        env: of hers, beside that of every person.
    """
    parts = (layers.build_debian(nodes.place), layers.build_files(nodes.place, "mark", {MARK: b""}))
    registry.put(nodes.place, "toy:1", parts, {"Env": [*registry.SETTINGS["Env"], f"LANG={LANG}"]})
    login = Login.made(nodes, runtime)
    login.more_env.update(env)
    (login.folder / "inventory" / "queue.yaml").write_text(INVENTORY.format(runtime=runtime))
    program = login.folder / "images" / "toy" / "program.py"
    program.write_text(LOOK + program.read_text())
    login.must("provision", "queue")
    return login


def with_env(login: Login, env: str) -> None:
    """Give her playbook variables for its tasks."""
    playbook = login.folder / "playbooks" / "toy.yaml"
    playbook.write_text(f"{playbook.read_text()}env: {{{env}}}\n")


def seen(login: Login, trial: str) -> dict[str, Any]:
    """By node, what the tasks of a trial's first attempt saw."""
    (folder,) = login.sweep().glob(f"attempts/{trial}-*/a1")
    found = {path.name.split(".")[1]: path for path in folder.glob("seen.*.json")}
    return {node: json.loads(path.read_text()) for node, path in sorted(found.items())}


def as_planned(tasks: dict[str, Any], folder: Path, image: str) -> None:
    """Every task was inside; its folder, mounts, rights and variables are the plan's."""
    for task in tasks.values():
        assert task["inside"]
        assert task["folder"] == task["env"]["HOME"] == str(folder)
        assert task["data"] == ["train", "val"]
        assert image in task["image"]
        assert task["writable"] == []
        assert ".ssh" not in task["home"]  # as the node's own has it
        assert task["env"]["A_WORD"] == "one, two"
        assert task["env"]["PIP_BREAK_SYSTEM_PACKAGES"] == "1"  # the image's own
        assert task["env"]["PATH"] == registry.SETTINGS["Env"][0].removeprefix("PATH=")
        assert "LEAKED" not in task["env"]  # as the user's own has it


def running(login: Login, containers: Callable[[], set[str]]) -> Any:
    """A slow sweep of one gang over both nodes, in the middle of its iterations.

    Args:
        containers: the nodes that have some.
    """
    login.playbook(("2x1",), step_s=SLOW)
    before = set(login.state.glob(LOGS))
    started = login.start(*PROGRAM, "sweep", "toy", "--new")
    wait_for(
        lambda: any(STEP.search(log.read_bytes()) for log in set(login.state.glob(LOGS)) - before),
        "iterations",
    )
    assert containers() == {"vs001", "vs002"}
    return started
