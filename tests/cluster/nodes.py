"""Nodes of a run: their folders, their daemons' settings, starting them, waiting for them."""

import base64
import hashlib
import json
import shutil
import socket
import time
from pathlib import Path

from tests import commands
from tests.cluster import processes
from tests.cluster.place import (
    GATEWAY,
    STANDARD_PATH,
    STUBS,
    Place,
    TestbedError,
    address,
    node_names,
)

READY_S = 180.0
_HERE = Path(__file__).parent
_PLAIN = 4242
_USER = f"bench:x:{_PLAIN}:{_PLAIN}:a plain user:/home/bench:/bin/sh"

_SSHD = f"""\
Port 22
HostKey /etc/ssh/host_key
PidFile /run/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
LogLevel VERBOSE
SetEnv PATH={STUBS}:{STANDARD_PATH}
"""

_CONTAINERD = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt"]
[grpc]
address = "/run/containerd/containerd.sock"
"""


def prepare(place: Place, node: str, *, nodes: int) -> None:
    """Write a node's folder: its /etc, /var, /root, /home and /data, and its SSH keys."""
    own = place.own(node)
    for part in ("var/lib/docker", "var/lib/containerd", "var/log", "data", "root/.ssh"):
        (own / part).mkdir(parents=True)
    for shared in ("tmp", "var/tmp"):
        (own / shared).mkdir()
        (own / shared).chmod(0o1777)
    (own / "var" / "run").symlink_to("/run")
    shutil.copytree("/etc", own / "etc", symlinks=True, ignore=_left_out)
    _accounts(own)
    _settings(place, node, nodes=nodes)
    _data(own / "data")
    public = (place.folder / "id_ed25519.pub").read_text()
    for user, owner in (("root", 0), ("home/bench", _PLAIN)):
        ssh = own / user / ".ssh"
        ssh.mkdir(mode=0o700, parents=True, exist_ok=True)
        ssh.chmod(0o700)
        (ssh / "authorized_keys").write_text(public)
        for path in (ssh.parent, ssh, ssh / "authorized_keys"):
            shutil.chown(path, owner, owner)


def start(place: Place, node: str) -> None:
    """Start a node's namespaces and, in them, its daemons; returns before they are ready."""
    fresh = ("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child")
    first = ("tini", "--", "sh", str(_HERE / "node.sh"), str(place.folder), node)
    log = place.own(node) / "node.log"
    processes.start(place, (*place.inside(node), *fresh, *first), log=log, VIRTUAL_NODE=node)


def wait(place: Place, node: str) -> None:
    """Wait until a node's sshd and dockerd answer.

    Raises:
        TestbedError: they do not; says the end of their logs.
    """
    deadline = time.monotonic() + READY_S
    while not _is_ready(place, node):
        if time.monotonic() > deadline:
            raise TestbedError(f"node {node} does not come up:\n{_logs(place.own(node))}")
        time.sleep(0.05)


def fingerprint(public_key: str) -> str:
    """The fingerprint of a line of a public key, as ssh-keygen prints it."""
    blob = base64.b64decode(public_key.split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _left_out(folder: str, names: list[str]) -> list[str]:
    # The machine's own keys and engine settings are no node's business.
    return [name for name in names if folder == "/etc" and name in {"ssh", "docker", "testbed"}]


def _accounts(own: Path) -> None:
    etc = own / "etc"
    for name, line in (
        ("passwd", _USER),
        ("group", f"bench:x:{_PLAIN}:"),
        ("shadow", "bench:*:1::::::"),
    ):
        lines = (etc / name).read_text().splitlines()
        kept = [line for line in lines if not (name == "shadow" and line.startswith("root:"))]
        extra = ["root:*:1::::::"] if name == "shadow" else []
        (etc / name).write_text("\n".join([*kept, *extra, line]) + "\n")


def _settings(place: Place, node: str, *, nodes: int) -> None:
    etc = place.own(node) / "etc"
    hosts = "".join(f"{address(node_name)} {node_name}\n" for node_name in node_names(nodes))
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{GATEWAY} gateway\n{hosts}")
    (etc / "hostname").write_text(f"{node}\n")
    for folder in ("ssh", "docker", "testbed"):
        (etc / folder).mkdir()
    key = str(etc / "ssh" / "host_key")
    processes.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", node, "-f", key)
    (etc / "ssh" / "sshd_config").write_text(_SSHD)
    (etc / "testbed" / "containerd.toml").write_text(_CONTAINERD)
    shutil.copy(_HERE / "daemon.sh", etc / "testbed" / "daemon.sh")
    (etc / "docker" / "daemon.json").write_text(json.dumps(_engine(place, node), indent=1))


def _engine(place: Place, node: str) -> dict[str, object]:
    """dockerd's settings."""
    return {
        "hosts": ["unix:///run/docker.sock"],
        "containerd": "/run/containerd/containerd.sock",
        "data-root": "/var/lib/docker",
        "iptables": False,
        "ip6tables": False,
        "ip-forward": False,
        "bridge": "none",
        "insecure-registries": ["10.11.0.0/24"],
        "live-restore": False,
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "cgroup-parent": f"/{place.netns}/{node}",
        "runtimes": {"nvidia": {"path": f"{STUBS}/nvidia-container-runtime"}},
        **commands.image_store(int(node[2:]) - 1),
    }


def _data(data: Path) -> None:
    """Data sets of a few bytes, the same on every node; no image is in any file."""
    for part, classes in (("train", 4), ("val", 2)):
        for index in range(classes):
            wnid = f"n{1440764 + index:08d}"
            folder = data / "image" / part / wnid
            folder.mkdir(parents=True)
            for picture in range(3):
                (folder / f"{wnid}_{picture}.JPEG").write_text(
                    f"stand-in {part} {wnid} {picture}\n"
                )
    shards = [f"train-{index:05d}-of-00002" for index in range(2)]
    parts = [f"part-{index:05d}" for index in range(256)]
    gpt = "gpt_sample_dataset_text_document"
    for folder, names in (
        (data / "tfrecords", shards),
        (data / "dali_idx", [f"{shard}.idx" for shard in shards]),
        (data / "ofrecord" / "train", parts),
        (data / "wiki", [f"part-{index}" for index in range(32)]),
        (data / "gpt", [f"{gpt}.bin", f"{gpt}.idx"]),
    ):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text(f"stand-in {name}\n")


def _is_ready(place: Place, node: str) -> bool:
    pid = processes.init(place, node)
    if pid is None:
        return False
    run = Path(f"/proc/{pid}/root/run")
    return (run / "sshd.pid").exists() and _pings(run / "docker.sock")


def _pings(engine: Path) -> bool:
    """Whether the Docker engine behind a socket answers."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(2.0)
            line.connect(str(engine))
            line.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in line.recv(64)
    except OSError:
        return False


def _logs(own: Path) -> str:
    logs = (own / "node.log", *sorted((own / "var" / "log").glob("*d.log")))
    return "\n".join(
        f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in logs if log.is_file()
    )
