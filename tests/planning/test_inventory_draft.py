"""Inventories written from the answers of machines: their texts, which ``check`` accepts."""

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.files import yaml_reader
from orchestrator.inputs import user_files
from orchestrator.planning import inventory_draft
from orchestrator.planning.inventory_draft import DraftNode, Jobs
from orchestrator.probes import discovery
from orchestrator.probes.discovery import Discovered
from orchestrator.probes.sections import Answers, Output
from tests.probes.answers import HOST_LINES

SAMPLES = Path(__file__).parents[1] / "samples"
ETHERNET = "mlx5_0 mlx5_1"
ROUTED = "0000:0000:0000:0000:0000:ffff:0b00:0048"
REFUSED = Output(1, "", "permission denied while trying to connect to the Docker daemon socket")


def ports(names: str, layer: str = "InfiniBand", state: str = "4: ACTIVE", rate: int = 400) -> str:
    """Return lines of the kernel's files about these adapters."""
    return "".join(f"{hca}|1|{state}|{rate} Gb/sec (4X)|{layer}\n" for hca in names.split())


def answer(**texts: str) -> Discovered:
    """Return the answer of a node with one A100 and ten adapters, but with these texts."""
    plain = {
        "host": HOST_LINES,
        "gpu": (SAMPLES / "nvidia-smi" / "telegraf_a100-sxm4-v12.xml").read_text(),
        "topology": (SAMPLES / "topo" / "litgpt_a100_8gpu_10nic_numa_id.txt").read_text(),
        "ports": ports(" ".join(f"mlx5_{n}" for n in range(10))),
        "gids": "",
        "place": "server 10.0.0.11\nroute eno1\nslurm slurm 23.11.4\n",
        "docker.info": (SAMPLES / "docker" / "debian_20.10.24_info.json").read_text()
        + "free_kib 99999999\n",
        "docker.version": (SAMPLES / "docker" / "debian_20.10.24_version.json").read_text(),
        "sudo": "20.10.24\n",
    }
    outputs = {name: Output(0, text, "") for name, text in {**plain, **texts}.items()}
    return discovery.read_answers(Answers(outputs, 0))


def bare(**found: Output) -> Discovered:
    """Return the answer of a machine without GPUs, adapters and Docker, but with these outputs."""
    absent = dict.fromkeys(
        ("gpu", "topology", "docker.info", "docker.version", "sudo"),
        Output(127, "", "not found"),
    )
    empty = dict.fromkeys(("ports", "gids", "place"), Output(0, "", ""))
    docker = {name: found["docker"] for name in ("docker.info", "docker.version") if found}
    outputs = {"host": Output(0, HOST_LINES, ""), **empty, **absent, **docker, **found}
    return discovery.read_answers(Answers(outputs, 0))


def node(number: int, found: Discovered | None, **said: object) -> DraftNode:
    """Return a node that is reached by SSH."""
    name, address = f"gpu{number:02}", f"10.0.0.{10 + number}"
    plain = DraftNode(name, address, "bench", 22, "~/.ssh/id_ed25519", found=found)
    return replace(plain, **said)  # type: ignore[arg-type]  # each test names real fields


def roce(*second: int) -> Discovered:
    """Return the answer of a node whose second adapter has routable addresses at these indices."""
    shared = [
        f"{hca} 1 {index} {gid} eth0 {kind}"
        for hca in ETHERNET.split()
        for index, gid, kind in (
            (1, f"fe80{ROUTED[4:]}", "RoCE v2"),
            (2, ROUTED, "IB/RoCE v1"),
        )
    ]
    lines = [
        *(f"mlx5_0 1 {index} {ROUTED} eth0 RoCE v2" for index in (3, 5)),
        *(f"mlx5_1 1 {index} {ROUTED} eth0 RoCE v2" for index in second),
    ]
    links = ports(ETHERNET, layer="Ethernet") + ports("mlx5_2", rate=100)
    return answer(topology="", ports=links, gids="\n".join(shared + lines))


def mixed() -> Discovered:
    """Return the answer of a node with GPUs of two models."""
    found = answer()
    assert found.facts.gpu is not None
    gpus = replace(found.facts.gpu, models=(*found.models, "NVIDIA T400"))
    return replace(found, facts=replace(found.facts, gpu=gpus))


JUMP = "ops@10.0.0.1:2222"
SILENT = node(3, None, why="no route\nto host", claimed_gpus=8, known_hosts="/keys/known_hosts")
JOBS = Jobs("gpu", None, "04:00:00", 16, has_pyxis=False)
WITH_PYXIS = replace(JOBS, has_pyxis=True, account="perf")


@dataclass(frozen=True)
class Draft:
    """The nodes of an inventory to be, and the partition that gives them."""

    nodes: tuple[DraftNode, ...]
    jobs: Jobs | None = None

    def text(self) -> str:
        return inventory_draft.text("lab", "dlperf-orch init gpu01", self.nodes, self.jobs)


DRAFTS = {
    "two equal nodes with Docker, of whose adapters two are far from the GPU": Draft(
        (node(1, answer()), node(2, answer()))
    ),
    "a second node with an adapter that is down, and a silent one": Draft(
        (
            node(1, answer()),
            node(2, answer(topology="", ports=ports("a1") + ports("a2", state="1: DOWN"))),
            SILENT,
        )
    ),
    "no answer": Draft((replace(SILENT, claimed_gpus=None),)),
    "a jump host": Draft((node(1, answer(), jump=JUMP), node(2, answer(), jump=JUMP))),
    "no Docker and no GPU": Draft((node(1, bare(), agent=True),)),
    "no Docker on one of two nodes": Draft((node(1, answer()), node(2, bare()))),
    "Docker behind sudo": Draft((node(1, bare(docker=REFUSED, sudo=Output(0, "27.1\n", ""))),)),
    "GPUs of two models": Draft((node(1, mixed()),)),
    "this machine": Draft((DraftNode("localhost", "127.0.0.1", "bench", found=answer()),)),
    "RoCE with a common index": Draft((node(1, roce(3, 7)),)),
    "RoCE without a common index": Draft((node(1, roce(7)),)),
    "adapters by number": Draft((node(1, answer(topology="", ports=ports("mlx5_10 mlx5_9 ib"))),)),
    "a partition": Draft((node(7, answer()),), JOBS),
    "a partition with pyxis": Draft((node(7, bare()),), WITH_PYXIS),
    "a partition without containers": Draft((node(7, bare()),), JOBS),
    "a partition whose driver does not run": Draft(
        (DraftNode("gpu07", "10.0.0.11", found=bare(), claimed_gpus=8),),
        replace(JOBS, down="gpu09"),
    ),
}


def test_inventories_declare_what_was_observed(snapshot: SnapshotAssertion) -> None:
    """Comments name what needs a look: what is missing, left out, or differs."""
    assert {name: draft.text() for name, draft in DRAFTS.items()} == snapshot


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
def test_a_drafted_inventory_is_accepted(draft: Draft) -> None:
    found = user_files.judged_cluster(yaml_reader.document(draft.text(), "it"))
    if not draft.jobs:
        assert [member.name for member in found.members] == [one.name for one in draft.nodes]


def test_a_machine_answers_everything_in_one_round_trip() -> None:
    """A real answer is parsed; a machine that answers too late is an error."""
    probe = discovery.probe("/tmp", nonce="abc123")
    done = subprocess.run(probe.argv, capture_output=True, text=True, timeout=180, check=True)
    assert probe.parse(done.stdout).facts.host.cpus > 0
    with pytest.raises(errors.LogError) as hung:
        discovery.read_answers(Answers({"host": Output(None, "", "")}, 0))
    assert hung.value.code == "HOST-HUNG"


def test_ports_that_cannot_be_parsed_are_left_out() -> None:
    """A rate in words, an unknown layer, a short line."""
    text = "a|1|4: ACTIVE|2.5 Gb/sec (1X)|InfiniBand\nb|1|4: ACTIVE|fast|InfiniBand\nc|1\nd|x|||\n"
    assert [(port.name, port.rate_gbps) for port in discovery.ports(text)] == [("a", 2)]


@pytest.mark.parametrize(
    ("word", "written"),
    [("no", '"no"'), ("1.2", '"1.2"'), ("10.0.0.1", "10.0.0.1"), ("a: b", '"a: b"'), ("x", "x")],
)
def test_a_text_that_yaml_could_read_differently_is_quoted(word: str, written: str) -> None:
    assert inventory_draft.scalar(word) == written
