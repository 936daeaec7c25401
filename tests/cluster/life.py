"""Bringing a run up and taking it down."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.cluster import (
    downloads,
    inventory,
    network,
    nodes,
    overlay,
    processes,
    registry,
    stubs,
)
from tests.cluster import slurm as scheduler
from tests.cluster.place import (
    GATEWAY,
    MOST_NODES,
    REGISTRY,
    WEB,
    Place,
    TestbedError,
    address,
    node_names,
    runs,
)

_NEEDED = ("ip", "nsenter", "unshare", "tini", "sshd", "dockerd", "containerd", "runc", "git")
_ALSO = ("docker", "docker-registry", "mmdebstrap", "ssh-keygen", "setsid", "iptables")


def up(place: Place, *, count: int, slurm: bool = False) -> None:
    """Bring a run up; when anything fails, take down what was begun.

    Raises:
        TestbedError: this machine cannot, or the run is up already.
    """
    _able(count)
    if place.run in runs():
        raise TestbedError(f"run {place.run} is there already; needed another name, or `down`")
    try:
        _up(place, node_names(count), slurm)
    except BaseException:
        down(place)
        raise


def down(place: Place) -> None:
    """End and remove everything of a run; nothing left of it is not an error."""
    processes.end(place)
    leftovers = (place.folder, *place.cache.glob(f"*.{place.run}"))
    for mount in reversed(_mounts(leftovers)):
        processes.call("umount", "--lazy", mount)
    network.remove(place)
    for tree in _cgroups(place):
        for folder, _, _ in os.walk(tree, topdown=False):
            os.rmdir(folder)
    for leftover in leftovers:
        # A container's files are many: rm is several times faster than Python.
        subprocess.run(["rm", "-rf", "--one-file-system", str(leftover)], check=True)


def alive(place: Place) -> dict[str, object]:
    """What lives of a run, for `status`."""
    own = sorted((place.folder / "nodes").glob("*"))
    return {
        "run": place.run,
        "folder": str(place.folder),
        "netns": place.netns if network.is_there(place) else None,
        "nodes": {path.name: processes.init(place, path.name) for path in own},
        "processes": len(processes.marked(place.mark)),
    }


def lacking() -> str:
    """What this machine lacks for a virtual cluster, in words; empty if nothing."""
    if os.geteuid() != 0:
        return "the virtual cluster needs root"
    # Debian keeps daemons out of a plain user's PATH.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in (*_NEEDED, *_ALSO) if not shutil.which(name, path=path)]
    return f"not on this machine: {', '.join(missing)}" if missing else ""


def _able(count: int) -> None:
    if words := lacking():
        raise TestbedError(words)
    if not 1 <= count <= MOST_NODES:
        raise TestbedError(f"{count} nodes; needed 1 to {MOST_NODES}")


def _up(place: Place, names: Sequence[str], slurm: bool) -> None:
    nodes_in_order = tuple(names)
    place.folder.mkdir(parents=True, mode=0o755)
    key = str(place.folder / "id_ed25519")
    processes.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", place.netns, "-f", key)
    stubs.write(place.folder / "stubs")
    network.lay(place, nodes_in_order)
    if slurm:
        scheduler.prepare(place, nodes_in_order)
    for node in nodes_in_order:
        nodes.prepare(place, node, nodes=len(nodes_in_order))
        nodes.start(place, node)
    served = downloads.write(place)
    overlay.write(place.folder / "work", asdict(served))
    _web(place)
    registry.fill(place)
    registry.serve(place)
    inventory.write(place, nodes_in_order)
    _all([partial(nodes.wait, place, node) for node in nodes_in_order])
    _listening(place)
    if slurm:
        scheduler.start(place, nodes_in_order)
    document = {
        "run": place.run,
        "folder": str(place.folder),
        "netns": place.netns,
        "enter": list(place.inside()),
        "inventory": str(place.folder / "virtual.yaml"),
        "cpu_inventory": str(place.folder / "cpu.yaml"),
        "identity": key,
        "known_hosts": str(place.folder / "known_hosts"),
        "registry": REGISTRY,
        "web": f"http://{WEB}",
        "nodes": [{"name": node, "address": address(node)} for node in nodes_in_order],
        "downloads": asdict(served),
        **({"slurm": scheduler.document(place)} if slurm else {}),
    }
    place.document.write_text(json.dumps(document, indent=2) + "\n")


def _web(place: Place) -> None:
    program = str(Path(__file__).with_name("web.py"))
    www, port = str(place.folder / "www"), WEB.rpartition(":")[2]
    argv = (*place.inside(), sys.executable, program, www, GATEWAY, port)
    processes.start(place, argv, log=place.folder / "web.log")


def _listening(place: Place) -> None:
    """Wait until the registry and the web server listen."""
    wanted = {REGISTRY, WEB}
    deadline = time.monotonic() + nodes.READY_S
    while wanted - set(processes.call(*place.inside(), "ss", "-Htln").split()):
        if time.monotonic() > deadline:
            logs = [place.folder / name for name in ("registry.log", "web.log")]
            said = "\n".join(log.read_text(errors="replace")[-1500:] for log in logs)
            raise TestbedError(f"registry or web server do not listen:\n{said}")
        time.sleep(0.05)


def _all(tasks: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(tasks)) as pool:
        for done in [pool.submit(task) for task in tasks]:
            done.result()


def _mounts(folders: Sequence[Path]) -> list[str]:
    """What is mounted in these folders here; the mounts of nodes end with them."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    inside = tuple(f"{folder}/" for folder in folders)
    return [point for point in points if point.startswith(inside)]


def _cgroups(place: Place) -> list[Path]:
    """The run's control groups, in every hierarchy."""
    root = Path("/sys/fs/cgroup")
    found: list[Path] = []
    with suppress(OSError):
        found = [path / place.netns for path in (root, *root.iterdir())]
    return [path for path in found if path.is_dir()]
