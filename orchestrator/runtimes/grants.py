"""What a container is granted of its node: user, devices, GPUs, memory and limits."""

from typing import Any

from docker.utils import parse_bytes

from orchestrator import errors
from orchestrator.deadlines import COMMAND_S
from orchestrator.model.plan import Mount
from orchestrator.runtimes.engine import Engine, EngineFacts
from orchestrator.runtimes.once import Once
from orchestrator.runtimes.settings import ContainerSettings
from orchestrator.transports import Transport

DEVICE_REQUESTS_API = (1, 40)
USER = "id -u; id -g"
HCA_DEVICES = 'for path in /dev/infiniband/*; do [ -c "$path" ] && echo "$path"; done; true'
GPU_HOOK = "command -v nvidia-container-runtime-hook"
CDI_SPECS = "grep -ls nvidia.com/gpu /etc/cdi/* /var/run/cdi/*"
# One file of bounded size: what counts is the raw log in the attempt's folder.
LOG = {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "1"}}


class Grants:
    """What containers get on one node; the node is asked once for each fact."""

    def __init__(self, transport: Transport, engine: Engine, settings: ContainerSettings) -> None:
        self._transport = transport
        self._engine = engine
        self._settings = settings
        self._user = Once(self._node_user)
        self._gpu_access = Once(self._way_of_gpus)
        self._hca_devices = Once(self._node_hca_devices)

    def host_config(
        self, mounts: tuple[Mount, ...], *, gpus: bool, capabilities: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """``HostConfig`` of Docker's API for a container.

        Args:
            capabilities: that it needs beyond those of the settings.

        Raises:
            UnfitError: the node lacks what the settings ask for.
        """
        config: dict[str, Any] = {
            "NetworkMode": "host",
            "LogConfig": LOG,
            "Mounts": [_mount(mount) for mount in mounts],
            "Ulimits": [
                {"Name": name, "Soft": value, "Hard": value}
                for name, value in self._settings.ulimits.items()
            ],
            **self._rights(capabilities),
        }
        if self._settings.shm_size is not None:
            config["ShmSize"] = parse_bytes(self._settings.shm_size)
        if gpus and self.gpu_access == "runtime":
            config["Runtime"] = "nvidia"
        elif gpus and self.gpu_access != "none":
            config["DeviceRequests"] = [_gpu_request(self.gpu_access)]
        return config

    def environment(self, home: str, *, gpus: bool) -> dict[str, str]:
        """Environment variables for the container's user and for GPUs.

        Args:
            home: ``HOME`` of a user whom the image does not know.
        """
        env = {}
        if self.user.split(":")[0] != "0":
            # A user without a name in the image has no home, and getpass.getuser() fails.
            env = {"HOME": home, "USER": "dlperf"}
        if gpus and self.gpu_access == "runtime":
            # All of the node's GPUs, here as in _gpu_request: CUDA_VISIBLE_DEVICES of the plan
            # chooses, so that plan and provenance hold the node's own indices.
            env["NVIDIA_VISIBLE_DEVICES"] = "all"
            env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
        return env

    @property
    def user(self) -> str:
        """uid:gid of the user that we are on the node, who owns the attempt's folder."""
        return self._user.get()

    @property
    def gpu_access(self) -> str:
        """How GPUs come into containers here: runtime, gpus, cdi, or none.

        Raises:
            UnfitError: GPU-RUNTIME; the engine has none of the ways that were tried.
        """
        return self._gpu_access.get()

    def _node_user(self) -> str:
        return ":".join(self._lines(USER))

    def _way_of_gpus(self) -> str:
        requested = self._settings.gpu_access
        if requested == "none":
            return requested
        facts = self._engine.facts()
        # The nvidia runtime first: CDI descriptions of a driver since replaced are still found.
        ways = ("runtime", "gpus", "cdi") if requested == "auto" else (requested,)
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

    def _node_hca_devices(self) -> tuple[str, ...]:
        devices = self._lines(HCA_DEVICES)
        if not devices:
            raise errors.UnfitError(
                "there is no device in /dev/infiniband; the inventory declares HCAs",
                code="IB-DEVICES",
                node=self._transport.node,
                fix="load the InfiniBand modules (ib_uverbs) on the node",
            )
        return devices

    def _rights(self, capabilities: tuple[str, ...]) -> dict[str, Any]:
        if self._settings.privileged:
            return {"Privileged": True}
        rights: dict[str, Any] = {"CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"]}
        added = ["IPC_LOCK"] if self._settings.has_hcas else []
        if added or capabilities:
            rights["CapAdd"] = [*added, *capabilities]
        if self._settings.has_hcas:
            rights["Devices"] = [
                {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}
                for path in self._hca_devices.get()
            ]
        return rights

    def _has(self, way: str, facts: EngineFacts) -> bool:
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


def _mount(mount: Mount) -> dict[str, Any]:
    # Of the kind that refuses a source that is not there, where -v would make a folder of root's.
    return {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
    }


def _gpu_request(way: str) -> dict[str, Any]:
    if way == "cdi":
        return {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}
    return {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu", "compute", "utility"]]}
