"""A container's share of its node: user, devices, GPUs, memory and limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S
from orchestrator.model.attempt import Attempt
from orchestrator.model.cluster import Cluster
from orchestrator.model.plan import Mount, Task
from orchestrator.model.site import DockerFacts
from orchestrator.model.text import size_bytes
from orchestrator.transports import Transport
from orchestrator.transports.cached import Cached

if TYPE_CHECKING:  # a dry run does not wait for Docker's library
    from orchestrator.runtimes.engine import Engine, EngineFacts

DEVICE_REQUESTS_API = (1, 40)
# The nvidia runtime first: CDI descriptions of a driver since replaced are still found.
WAYS = ("runtime", "gpus", "cdi")
USER = "id -u; id -g"
HCA_FOLDER = "/dev/infiniband"
HCA_DEVICES = f'for path in {HCA_FOLDER}/*; do [ -c "$path" ] && echo "$path"; done; true'
GPU_HOOK = "command -v nvidia-container-runtime-hook"
CDI_SPECS = "grep -ls nvidia.com/gpu /etc/cdi/* /var/run/cdi/*"
# One file of bounded size: what counts is the raw log in the attempt's folder.
LOG = {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "1"}}


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """Settings that a node's containers start with, from the inventory.

    Args:
        image: by id or reference, for containers of no attempt; it must be there.
        shm_size: as Docker writes it, 16g; None for Docker's own.
        ulimits: soft and hard alike; -1 is none.
        gpu_access: auto, cdi, runtime, gpus or none.
        owner: the record of who starts containers, for others who find them there.
    """

    image: str
    shm_size: str | None = None
    ulimits: Mapping[str, int] = field(default_factory=dict)
    gpu_access: str = "auto"
    has_hcas: bool = False
    privileged: bool = False
    owner: str = ""

    @classmethod
    def of(cls, cluster: Cluster, image: str = "", owner: str = "") -> "ContainerSettings":
        """Return the settings of an inventory.

        Args:
            image: by id or reference; empty where only attempts, which name theirs, are run.
        """
        container = cluster.container
        return cls(
            image=image,
            shm_size=container.shm_size,
            ulimits={str(name): limit for name, limit in container.ulimits.items()},
            gpu_access=container.gpu_access,
            has_hcas=any(node.hcas for node in cluster.members),
            privileged=container.privileged,
            owner=owner,
        )


class Grants:
    """Describes containers by facts of a node, each of which is asked when it is needed.

    Args:
        user: returns uid:gid of the user there, who owns the attempt's folder.
        gpu_access: returns how GPUs come into containers there: runtime, gpus, cdi, or none.
        require_hcas: raises IB-DEVICES where the node has no devices of HCAs.
    """

    def __init__(
        self,
        settings: ContainerSettings,
        user: Callable[[], str],
        gpu_access: Callable[[], str],
        require_hcas: Callable[[], object] = tuple,
    ) -> None:
        self._settings, self._require_hcas = settings, require_hcas
        self.user, self._gpu_access = user, gpu_access

    def request(
        self, attempt: Attempt, task: Task, image: str, started: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return ``HostConfig`` of Docker's API for a task's container, and the rest.

        Args:
            started: ``Entrypoint``, ``Cmd`` and ``Labels``.

        Raises:
            UnfitError: the node lacks what the settings ask for.
        """
        folder, gpus = attempt.folder(task), bool(task.gpus)
        mounts = (Mount(folder, folder, read_only=False), *task.mounts)
        host = self.host_config(mounts, gpus=gpus, capabilities=task.capabilities)
        env = {**self.environment(folder, gpus=gpus), **task.env}
        config = {"Image": image, "User": self.user(), "WorkingDir": folder, "Env": pairs(env)}
        return host, {**config, **started}

    def host_config(
        self, mounts: tuple[Mount, ...], *, gpus: bool, capabilities: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Build ``HostConfig`` of Docker's API for a container.

        Args:
            capabilities: that it needs beyond those of the settings.

        Raises:
            UnfitError: the node lacks what the settings ask for.
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
                for name, value in self._settings.ulimits.items()
            ],
            **self._rights(capabilities),
        }
        if self._settings.shm_size is not None:
            config["ShmSize"] = size_bytes(self._settings.shm_size)
        if gpus and self._gpu_access() == "runtime":
            config["Runtime"] = "nvidia"
        elif gpus and self._gpu_access() != "none":
            config["DeviceRequests"] = [_gpu_request(self._gpu_access())]
        return config

    def environment(self, home: str, *, gpus: bool) -> dict[str, str]:
        """Return environment variables for the container's user and for GPUs.

        Args:
            home: ``HOME`` of a user whom the image does not know.
        """
        env = {}
        if self.user().split(":")[0] != "0":
            # A user without a name in the image has no home, and getpass.getuser() fails.
            env = {"HOME": home, "USER": "dlperf"}
        if gpus and self._gpu_access() == "runtime":
            # All of the node's GPUs, here as in _gpu_request: CUDA_VISIBLE_DEVICES of the plan
            # chooses, so that plan and provenance hold the node's own indices.
            env["NVIDIA_VISIBLE_DEVICES"] = "all"
            env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
        return env

    def _rights(self, capabilities: tuple[str, ...]) -> dict[str, Any]:
        if self._settings.privileged:
            return {"Privileged": True}
        rights: dict[str, Any] = {"CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"]}
        added = ["IPC_LOCK"] if self._settings.has_hcas else []
        if added or capabilities:
            rights["CapAdd"] = [*added, *capabilities]
        if self._settings.has_hcas:
            self._require_hcas()
            # Docker grants each device that a folder contains (moby, daemon/oci_utils.go).
            paths = {"PathOnHost": HCA_FOLDER, "PathInContainer": HCA_FOLDER}
            rights["Devices"] = [{**paths, "CgroupPermissions": "rw"}]
        return rights


def of_node(transport: Transport, engine: "Engine", settings: ContainerSettings) -> Grants:
    """Return the grants of a node that is asked once for each fact."""
    node = _Node(transport, engine, settings)
    user, gpu_access = Cached(node.user), Cached(node.gpu_access)
    return Grants(settings, user.get, gpu_access.get, Cached(node.hca_devices).get)


class _Node:
    def __init__(self, transport: Transport, engine: "Engine", settings: ContainerSettings) -> None:
        self._transport, self._engine, self._settings = transport, engine, settings

    def user(self) -> str:
        """Return uid:gid of the user that we are there."""
        return ":".join(self._lines(USER))

    def gpu_access(self) -> str:
        """Return the way that the engine has, or raise GPU-RUNTIME."""
        requested = self._settings.gpu_access
        if requested == "none":
            return requested
        facts = self._engine.facts()
        ways = WAYS if requested == "auto" else (requested,)
        for way in ways:
            if self._has(way, facts):
                return way
        raise errors.UnfitError(
            f"Docker {facts.server_version} has the runtimes {', '.join(facts.runtimes)};"
            f" tried for GPUs: {', '.join(ways)}",
            code="GPU-RUNTIME",
            node=self._transport.node,
            fix="install the NVIDIA container toolkit on the node, or set container.gpu_access",
        )

    def hca_devices(self) -> tuple[str, ...]:
        """Return the devices of HCAs, or raise IB-DEVICES."""
        devices = self._lines(HCA_DEVICES)
        if not devices:
            raise errors.UnfitError(
                "there is no device in /dev/infiniband; the inventory declares HCAs",
                code="IB-DEVICES",
                node=self._transport.node,
                fix="load the InfiniBand modules (ib_uverbs) on the node",
            )
        return devices

    def _has(self, way: str, facts: "EngineFacts") -> bool:
        if way == "runtime":
            return "nvidia" in facts.runtimes
        api = tuple(int(part) for part in facts.api_version.split("."))
        # An older engine would silently start the container without GPUs.
        if api < DEVICE_REQUESTS_API:
            return False
        if way == "gpus":
            return bool(self._lines(GPU_HOOK))
        return facts.cdi and bool(self._lines(CDI_SPECS))

    def _lines(self, script: str) -> tuple[str, ...]:
        done = self._transport.run(("sh", "-c", script), timeout_s=COMMAND_S)
        return tuple(done.stdout.decode(errors="replace").split())


def way_of_gpus(requested: str, facts: DockerFacts | None) -> str:
    """Return the way that a node will choose, by what provision saw; else Docker's --gpus."""
    there = facts.gpu_ways if facts else ()
    known = (way for way in WAYS if way in there)
    return next(known, "gpus") if requested == "auto" else requested


def pairs(env: Mapping[str, str]) -> list[str]:
    """Return the variables as Docker's API and ``env`` take them."""
    return [f"{name}={value}" for name, value in env.items()]


def _gpu_request(way: str) -> dict[str, Any]:
    if way == "cdi":
        return {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}
    return {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu", "compute", "utility"]]}
