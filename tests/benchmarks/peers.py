"""The peers: the same work by an Ansible playbook, and by plain OpenSSH, on the virtual cluster."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import Cluster

PLAYBOOK = Path(__file__).parent / "ansible" / "provision.yaml"
HOW_TO_GET = "ansible-playbook is not here: apt-get install --no-install-recommends ansible-core"
# As containers of ours are started.
RIGHTS = (
    *("docker", "run", "--rm", "--network", "host", "--cap-drop", "ALL", "--shm-size", "1g"),
    *("--security-opt", "no-new-privileges", "--ulimit", "memlock=8388608"),
)
HARDWARE = ("--cap-add", "IPC_LOCK", "--device", "/dev/infiniband/uverbs0", "--runtime", "nvidia")


@dataclass(frozen=True, slots=True)
class Image:
    """An image that every node has."""

    tag: str
    id: str


def ssh_options(cluster: Cluster) -> tuple[str, ...]:
    """Nothing of this machine's own settings."""
    said = {
        "IdentityFile": cluster.document["identity"],
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": cluster.document["known_hosts"],
        "BatchMode": "yes",
    }
    return (
        "-F",
        "none",
        *(word for key, value in said.items() for word in ("-o", f"{key}={value}")),
    )


class Ansible:
    """ansible-playbook with pipelining, as many forks as nodes, and connections that persist."""

    def __init__(self, cluster: Cluster, folder: Path, image: Image) -> None:
        self._cluster, self._folder = cluster, folder
        self._inventory = folder / "ansible-inventory.json"
        hosts = {node.name: {"ansible_host": node.address} for node in cluster.nodes}
        values = {
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "image": image.tag,
            "image_id": image.id,
            "run_container": [*RIGHTS, *HARDWARE],
            "data_sets": ["/data/image", "/data/tfrecords"],
        }
        self._inventory.write_text(json.dumps({"nodes": {"hosts": hosts, "vars": values}}))

    def play_s(self) -> float:
        """Seconds of the playbook, from start to end of the process."""
        began = time.perf_counter()
        words = ("ansible-playbook", "-i", str(self._inventory), str(PLAYBOOK))
        done = self._cluster.run(*words, cwd=self._folder, env=self._env())
        lasted_s = time.perf_counter() - began
        if done.returncode:
            sys.exit(f"the playbook failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
        return lasted_s

    def _env(self) -> Mapping[str, str]:
        persist = ("-o", "ControlMaster=auto", "-o", "ControlPersist=600s")
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
            "ANSIBLE_HOME": str(self._folder / "ansible"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self._folder / "cp"),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_FORKS": str(len(self._cluster.nodes)),
            "ANSIBLE_SSH_ARGS": " ".join((*ssh_options(self._cluster), *persist)),
            "ANSIBLE_NOCOWS": "1",
            "LC_ALL": "C.UTF-8",
        }


def ansible_version() -> str | None:
    """Its first words about itself; None if it is not here."""
    if shutil.which("ansible-playbook") is None:
        return None
    done = subprocess.run(
        ("ansible-playbook", "--version"), capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[0]


class PlainSsh:
    """``ssh`` over warm connections, a process for each node, all nodes at once."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._words = ("ssh", *ssh_options(cluster), "-o", f"ControlPath={folder}/m-%h")

    @contextmanager
    def warm(self) -> Iterator[None]:
        """A connection to every node, for the time of the block."""
        opened = [self._start(node.address, "-MN") for node in self._cluster.nodes]
        try:
            for node, process in zip(self._cluster.nodes, opened, strict=True):
                # A command that came too early would make a connection of its own.
                while self._cluster.run(*self._words, "-O", "check", node.address).returncode:
                    if process.poll() is not None:
                        sys.exit(f"no connection to {node.name}")
                    time.sleep(0.05)
            yield
        finally:
            for process in opened:
                process.terminate()
                process.communicate()

    def gang_s(self, image: Image, argv: Sequence[str]) -> float:
        """Seconds of a container of that image on every node, then of fetching what it printed."""
        container = " ".join((*RIGHTS, image.id, *argv))
        began = time.perf_counter()
        self._everywhere(f"{container} >/var/tmp/plain.log 2>&1")
        logs = self._everywhere("cat /var/tmp/plain.log")
        lasted_s = time.perf_counter() - began
        for node, log in zip(self._cluster.nodes, logs, strict=True):
            (self._folder / f"{node.name}.log").write_text(log)
        if not all(logs):
            sys.exit("a container printed nothing")
        return lasted_s

    def skew_s(self) -> float:
        """How far apart a command's starts are that finds every node's connection warm."""
        told = [float(said) for said in self._everywhere("date +%s.%N")]
        return max(told) - min(told)

    def _everywhere(self, command: str) -> list[str]:
        running = [self._start(node.address, "-n", command) for node in self._cluster.nodes]
        said = [process.communicate() for process in running]
        if any(process.returncode for process in running):
            sys.exit(f"{command}: failed: {said}")
        return [out for out, _ in said]

    def _start(self, address: str, flag: str, *command: str) -> "subprocess.Popen[str]":
        words = (*self._words, flag, f"root@{address}", *command)
        return self._cluster.start(*words, cwd=self._folder, env=os.environ)
