"""A site: a cluster with the facts and findings of provisioning, and why an engine is silent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from orchestrator.model.problem import Problem

Severity = Literal["error", "warning"]
DataState = Literal["present", "empty", "unreadable", "missing", "hung"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's verdict on a node: what was seen, what was expected, what to do.

    Args:
        node: its name; ``all`` where the finding is about the cluster.
    """

    severity: Severity
    code: str
    node: str
    seen: str
    expected: str
    fix: str


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The machine and its operating system.

    Args:
        memlock_kib: how much memory its user may lock; None is all of it.
        addresses: by interface; None where the node has no tool that says so.
        proxies: names of the variables that are set, never their values.
        own_addresses: what the node's resolver gives for its own name, first the one that counts.
    """

    hostname: str
    boot_id: str
    kernel: str
    system: str
    cpu_model: str
    cpus: int
    memory_mib: int
    free_disk_mib: int
    shm_mib: int
    open_files: int | None
    load: float
    clock_s: float
    interfaces: tuple[str, ...]
    missing_modules: tuple[str, ...]
    torch: str
    memlock_kib: int | None = None
    addresses: Mapping[str, tuple[str, ...]] | None = None
    proxies: tuple[str, ...] = ()
    own_addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuSummary:
    """The GPUs of a node, as far as reports and comparisons need them; tuples in GPU order."""

    driver: str | None
    cuda: str | None
    models: tuple[str, ...]
    bus_ids: tuple[str | None, ...] = ()
    memory_mib: tuple[int | None, ...] = ()
    power_limits_w: tuple[float | None, ...] = ()
    vbios: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Topology:
    """The connections between the GPUs and HCAs of a node.

    Args:
        links: by row, then by every other device: the word as printed.
        digest: equal for nodes that are wired alike; None for a table with problems.
        cpu_affinity: by GPU, the CPUs that are nearest to it; None where blank or unsafe; empty
            without such a column.
        numa_affinity: by GPU, as ``cpu_affinity``.
        hcas: in column order; ``?0``, ``?1``, ... by place where the name is not known.
    """

    links: Mapping[str, Mapping[str, str]]
    digest: str | None
    cpu_affinity: Mapping[str, str | None] = field(default_factory=dict)
    numa_affinity: Mapping[str, str | None] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    hcas: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class HcaPort:
    """One port of an InfiniBand adapter; None where it could not be read."""

    name: str
    port: int
    type: str | None
    firmware: str | None
    state: str | None
    rate_gbps: int | float | None
    link_layer: str | None
    node_guid: str | None = None
    physical_state: str | None = None
    base_lid: int | None = None
    sm_lid: int | None = None


@dataclass(frozen=True, slots=True)
class DockerFacts:
    """A node's Docker engine and what it brings for GPUs.

    Args:
        cdi: whether the engine reads CDI files and one of them describes NVIDIA's GPUs.
        gpu_hook: whether NVIDIA's hook, which ``--gpus`` needs, is installed.
        proxies: names of the settings that are in force, never their values.
    """

    server_version: str
    api_version: str
    runtimes: tuple[str, ...]
    cdi: bool
    gpu_hook: bool
    root_dir: str
    free_mib: int | None
    proxies: tuple[str, ...]

    @property
    def gpu_ways(self) -> tuple[Literal["cdi", "runtime", "gpus"], ...]:
        """Return the ways to give GPUs to containers here, the best first."""
        ways: dict[Literal["cdi", "runtime", "gpus"], bool] = {
            "cdi": self.cdi,
            "runtime": "nvidia" in self.runtimes,
            "gpus": self.gpu_hook,
        }
        return tuple(way for way, there in ways.items() if there)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts of one node; None where a probe was not made or not answered.

    Args:
        infiniband: port by port, in the order in which ``ibstat`` prints them.
        ofed: version of the InfiniBand user space, where one is installed.
    """

    host: HostFacts
    gpu: GpuSummary | None = None
    topology: Topology | None = None
    infiniband: tuple[HcaPort, ...] | None = None
    ofed: str | None = None
    docker: DockerFacts | None = None
    data: Mapping[str, DataState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataDigest:
    """A data set as one node has it.

    Args:
        digest: over sizes and relative paths of all files, hex; contents are not read.
        train_files: under its folder ``train``; None if it has none.
        train_folders: directly in ``train``, one a class; None likewise.
        cached: whether it was computed earlier and the folders have not changed since.
    """

    path: str
    digest: str
    files: int
    size_bytes: int
    train_files: int | None
    train_folders: int | None
    cached: bool


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """An image on the nodes of a cluster.

    Args:
        id: what the engine of the first node calls it, and containers are started from: the digest
            of its configuration, or of its manifest where engines keep images in containerd.
        inputs_digest: over everything that went into it; its tag begins with it.
        code: commit or version of the benchmark's code in it; empty without one.
        python: version in the image; empty where it has none.
        locked: whether a lock file had named every digest before.
        ids: by node name, its id on nodes whose engine calls it otherwise.
    """

    name: str
    base: str
    base_digest: str
    id: str
    tag: str
    inputs_digest: str
    code: str
    python: str
    locked: bool
    ids: Mapping[str, str] = field(default_factory=dict)

    def on(self, node: str) -> str:
        return self.ids.get(node, self.id)


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster with its facts, findings, images and data sets, as last observed.

    Args:
        cluster_digest: of the inventory that was asked for.
        nodes: facts by node name; nodes that gave none are missing.
        provisioned: of the findings, those over what provisioning alone looks at: the inside of
            containers, and what lies between nodes.
        data: digests by name of the data set, then by node name.
    """

    version: Literal[2]
    cluster: str
    cluster_digest: str
    inventory: str
    observed_at: str
    nodes: Mapping[str, NodeFacts]
    findings: tuple[Finding, ...]
    images: Mapping[str, ImageRecord] = field(default_factory=dict)
    provisioned: tuple[Finding, ...] = ()
    data: Mapping[str, Mapping[str, DataDigest]] = field(default_factory=dict)

    def with_provisioned(self, *findings: Finding) -> "Site":
        """Return the site with more findings of checks that only provisioning runs."""
        provisioned = (*self.provisioned, *findings)
        return replace(self, findings=(*self.findings, *findings), provisioned=provisioned)

    @property
    def shared_machine(self) -> bool:
        """Return True if some nodes are the same machine: then speedup does not measure scaling."""
        boots = [facts.host.boot_id for facts in self.nodes.values()]
        return len(set(boots)) < len(boots)


DOCKER_CODES = {
    "ABSENT": "DOCKER-MISSING",
    "HUNG": "DOCKER-HUNG",
    "DENIED": "DOCKER-PERM",
    "DOWN": "DOCKER-DOWN",
    "FOREIGN": "DOCKER-FOREIGN",
}
"""The finding's code for each kind of an engine's silence."""

# The first that matches counts. Sources: podman 4.3.1 of Debian 12 with podman-docker; CLIs 20.10
# and 28.2.2; since 29 the client's words are others (moby/moby, client/request.go).
_KINDS = (
    # "Emulate Docker CLI using podman. Create ...", "podman version 4.3.1"
    (r"podman", "FOREIGN"),
    (r"command not found|sudo: .*not found", "ABSENT"),
    (r"permission denied|a password is required|not allowed to execute|^sudo: ", "DENIED"),
    # "Cannot connect to the Docker daemon at tcp://10.0.0.9:2375. Is the docker daemon running?"
    (r"(?:docker daemon|docker API) at (?!unix:)\w+:|command \[ssh .* dial-stdio\]", "FOREIGN"),
    (
        r"Cannot connect to the Docker daemon|docker daemon is not running"
        r"|failed to connect to the docker API|error during connect",
        "DOWN",
    ),
    (r"not found|no such file or directory$", "ABSENT"),
)


def kind_of_silence(said: str) -> str:
    """Return a key of ``DOCKER_CODES`` for what the docker command printed; empty if unknown."""
    words = " ".join(said.split()).rstrip(".")
    return next((kind for words_of, kind in _KINDS if re.search(words_of, words, re.I)), "")
