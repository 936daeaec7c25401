"""A request of Docker's API for a container as the words of ``docker run``."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any


def words(host: Mapping[str, Any], config: Mapping[str, Any], *options: str) -> tuple[str, ...]:
    """Return what follows ``docker`` to run a container in the foreground and then remove it.

    Args:
        host: ``HostConfig`` of Docker's API, as ``Grants.request`` makes it.
        config: the rest of the request; without an ``Entrypoint`` the image's own counts.
        options: more options of ``docker run``.

    Source: Docker 20.10, `docker run --help`.
    """
    entry, log = config.get("Entrypoint") or (), host["LogConfig"]
    return (
        *("run", "--rm", "--init", *options),
        *(f"--label={label}={value}" for label, value in config["Labels"].items()),
        f"--user={config['User']}",
        f"--workdir={config['WorkingDir']}",
        *(f"--env={pair}" for pair in config["Env"]),
        f"--network={host['NetworkMode']}",
        f"--log-driver={log['Type']}",
        *(f"--log-opt={name}={value}" for name, value in log["Config"].items()),
        *(f"--mount={_mount(mount)}" for mount in host["Mounts"]),
        *(f"--ulimit={u['Name']}={u['Soft']}:{u['Hard']}" for u in host["Ulimits"]),
        *_rights(host),
        *_hardware(host),
        *(f"--entrypoint={first}" for first in entry[:1]),
        config["Image"],
        *entry[1:],
        *config.get("Cmd", ()),
    )


def _mount(mount: Mapping[str, Any]) -> str:
    fields = [f"type={mount['Type']}", f"source={mount['Source']}", f"target={mount['Target']}"]
    row = io.StringIO()  # Docker reads it as a line of CSV
    csv.writer(row, lineterminator="").writerow([*fields, *["readonly"] * mount["ReadOnly"]])
    return row.getvalue()


def _rights(host: Mapping[str, Any]) -> Iterator[str]:
    if host.get("Privileged"):
        yield "--privileged"
    yield from (f"--cap-drop={name}" for name in host.get("CapDrop", ()))
    yield from (f"--cap-add={name}" for name in host.get("CapAdd", ()))
    yield from (f"--security-opt={option}" for option in host.get("SecurityOpt", ()))


def _hardware(host: Mapping[str, Any]) -> Iterator[str]:
    if "ShmSize" in host:
        yield f"--shm-size={host['ShmSize']}"
    for device in host.get("Devices", ()):
        paths = f"{device['PathOnHost']}:{device['PathInContainer']}"
        yield f"--device={paths}:{device['CgroupPermissions']}"
    if "Runtime" in host:
        yield f"--runtime={host['Runtime']}"
    for request in host.get("DeviceRequests", ()):
        yield from _gpus(request)


def _gpus(request: Mapping[str, Any]) -> Iterator[str]:
    if request["Driver"] == "cdi":
        yield from (f"--device={name}" for name in request["DeviceIDs"])
    else:
        (capabilities,) = request["Capabilities"]
        more = ",".join(name for name in capabilities if name != "gpu")  # which it adds itself
        yield f'--gpus=all,driver={request["Driver"]},"capabilities={more}"'
