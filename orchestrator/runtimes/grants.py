"""Requests for containers: user, devices, GPUs and limits, for Docker's API and `docker run`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestrator.model.attempt import Attempt
from orchestrator.model.node import Container
from orchestrator.model.plan import Mount, Task
from orchestrator.model.site import DockerFacts
from orchestrator.model.text import size_bytes

# The nvidia runtime first: CDI descriptions of a driver since replaced are still found.
WAYS = ("runtime", "gpus", "cdi")
HCA_FOLDER = "/dev/infiniband"
# One file of bounded size: what counts is the raw log in the attempt's folder.
LOG = {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "1"}}


def request(
    container: Container,
    attempt: Attempt,
    task: Task,
    started: Mapping[str, Any],
    *,
    user: str,
    gpu_access: str,
    has_hcas: bool,
) -> dict[str, Any]:
    """Return the request of Docker's API for a task's container.

    Args:
        started: ``Image``, ``Entrypoint``, ``Cmd`` and ``Labels``.
        user: uid:gid of the user there, who owns the attempt's folder.
        gpu_access: runtime, gpus, cdi, or none.
    """
    folder = attempt.folder(task)
    mounts = (Mount(folder, folder, read_only=False), *task.mounts)
    host = host_config(container, mounts, gpu_access, has_hcas, task.capabilities)
    env = {**environment(folder, user, gpu_access), **task.env}
    own = {"User": user, "WorkingDir": folder, "Env": pairs(env)}
    return {**own, **started, "HostConfig": host}


def host_config(
    container: Container,
    mounts: tuple[Mount, ...],
    gpu_access: str,
    has_hcas: bool,
    capabilities: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Build ``HostConfig`` of Docker's API for a container.

    Args:
        capabilities: that it needs beyond those of the inventory.
    """
    config: dict[str, Any] = {
        "NetworkMode": "host",
        "LogConfig": LOG,
        # Of the kind that refuses a missing source, where -v would make a folder of root's.
        "Mounts": [
            {
                "Type": "bind",
                "Source": mount.source,
                "Target": mount.target,
                "ReadOnly": mount.read_only,
            }
            for mount in mounts
        ],
        "Ulimits": [
            {"Name": name, "Soft": value, "Hard": value}
            for name, value in container.ulimits.items()
        ],
    }
    if container.privileged:
        config["Privileged"] = True
    else:
        config |= {"CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"]}
        if added := [*(["IPC_LOCK"] if has_hcas else ()), *capabilities]:
            config["CapAdd"] = added
        if has_hcas:
            # Docker grants each device that a folder contains (moby, daemon/oci_utils.go).
            paths = {"PathOnHost": HCA_FOLDER, "PathInContainer": HCA_FOLDER}
            config["Devices"] = [{**paths, "CgroupPermissions": "rw"}]
    if container.shm_size is not None:
        config["ShmSize"] = size_bytes(container.shm_size)
    if gpu_access == "runtime":
        config["Runtime"] = "nvidia"
    elif gpu_access == "cdi":
        config["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]
    elif gpu_access == "gpus":
        capable = [["gpu", "compute", "utility"]]
        config["DeviceRequests"] = [{"Driver": "nvidia", "Count": -1, "Capabilities": capable}]
    return config


def environment(home: str, user: str, gpu_access: str) -> dict[str, str]:
    """Return environment variables for the container's user and for GPUs."""
    env = {}
    if not user.startswith("0:"):
        # A user without a name in the image has no home, and getpass.getuser() fails.
        env = {"HOME": home, "USER": "dlperf"}
    if gpu_access == "runtime":
        # All of the node's GPUs, as for --gpus: CUDA_VISIBLE_DEVICES of the plan chooses, so that
        # plan and provenance hold the node's own indices.
        env["NVIDIA_VISIBLE_DEVICES"] = "all"
        env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
    return env


def way_of_gpus(requested: str, facts: DockerFacts | None) -> str:
    """Return the way that a node will choose, by what provision saw; else Docker's --gpus."""
    there = facts.gpu_ways if facts else ()
    known = (way for way in WAYS if way in there)
    return next(known, "gpus") if requested == "auto" else requested


def pairs(env: Mapping[str, str]) -> list[str]:
    """Return the variables as Docker's API and ``env`` take them."""
    return [f"{name}={value}" for name, value in env.items()]


def run_words(request: Mapping[str, Any], *options: str) -> tuple[str, ...]:
    """Return what follows ``docker`` to run a container in the foreground and then remove it.

    Args:
        request: as of Docker's API; without an ``Entrypoint`` the image's own counts.
        options: more options of ``docker run``.

    Source: Docker 20.10, `docker run --help`.
    """
    entry, host = request.get("Entrypoint") or (), request["HostConfig"]
    values: Mapping[str, Iterable[str]] = {
        "label": pairs(request["Labels"]),
        "user": [request["User"]],
        "workdir": [request["WorkingDir"]],
        "env": request["Env"],
        "network": [host["NetworkMode"]],
        "log-driver": [host["LogConfig"]["Type"]],
        "log-opt": pairs(host["LogConfig"]["Config"]),
        "mount": (
            f"type={it['Type']},source={it['Source']},target={it['Target']}"
            + (",readonly" if it["ReadOnly"] else "")
            for it in host["Mounts"]
        ),
        "ulimit": (f"{u['Name']}={u['Soft']}:{u['Hard']}" for u in host["Ulimits"]),
        "privileged": [""] if host.get("Privileged") else [],
        "cap-drop": host.get("CapDrop", ()),
        "cap-add": host.get("CapAdd", ()),
        "security-opt": host.get("SecurityOpt", ()),
        "shm-size": [str(host["ShmSize"])] if "ShmSize" in host else [],
        "device": _devices(host),
        "runtime": [host["Runtime"]] if "Runtime" in host else [],
        "gpus": (_gpus(gpus) for gpus in host.get("DeviceRequests", ()) if "Count" in gpus),
        "entrypoint": entry[:1],
    }
    given = ((f"--{option}", value) for option, each in values.items() for value in each)
    words = (f"{option}={value}" if value else option for option, value in given)
    return (
        *("run", "--rm", "--init", *options, *words, request["Image"]),
        *(*entry[1:], *request.get("Cmd", ())),
    )


def _devices(host: Mapping[str, Any]) -> Iterator[str]:
    for device in host.get("Devices", ()):
        yield f"{device['PathOnHost']}:{device['PathInContainer']}:{device['CgroupPermissions']}"
    for request in host.get("DeviceRequests", ()):
        yield from request.get("DeviceIDs", ())  # those of CDI


def _gpus(request: Mapping[str, Any]) -> str:
    (capabilities,) = request["Capabilities"]
    more = ",".join(name for name in capabilities if name != "gpu")  # which it adds itself
    return f'all,driver={request["Driver"]},"capabilities={more}"'
