"""Inventories written from what machines answered, each of which our own check accepts."""

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.files import yaml_reader
from orchestrator.inputs import user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import Gid
from orchestrator.planning import inventory_draft
from orchestrator.planning.inventory_draft import DraftNode, Jobs
from orchestrator.probes import discovery
from orchestrator.probes.discovery import Discovered
from orchestrator.probes.sections import Answers, Output
from tests.probes.answers import HOST_LINES

SAMPLES = Path(__file__).parents[1] / "samples"
RATE = "400 Gb/sec (4X NDR)"


def ports(*hcas: str, layer: str = "InfiniBand", state: str = "4: ACTIVE", rate: str = RATE) -> str:
    """Lines of the kernel's files."""
    return "".join(f"{hca}|1|{state}|{rate}|{layer}\n" for hca in hcas)


def answer(**texts: str) -> Discovered:
    """What a node of one A100 and ten adapters says, with these answers instead."""
    plain = {
        "host": HOST_LINES,
        "gpu": (SAMPLES / "nvidia-smi" / "telegraf_a100-sxm4-v12.xml").read_text(),
        "topology": (SAMPLES / "topo" / "litgpt_a100_8gpu_10nic_numa_id.txt").read_text(),
        "ports": ports(*(f"mlx5_{n}" for n in range(10))),
        "gids": "",
        "place": "server 10.0.0.11\nroute eno1\nslurm slurm 23.11.4\n",
        "docker.info": (SAMPLES / "docker" / "debian_20.10.24_info.json").read_text()
        + "free_kib 99999999\n",
        "docker.version": (SAMPLES / "docker" / "debian_20.10.24_version.json").read_text(),
        "sudo": "20.10.24\n",
    }
    outputs = {name: Output(0, text, "") for name, text in {**plain, **texts}.items()}
    return discovery.read_answers(Answers(outputs, 0))


def without(found: Mapping[str, Output]) -> Discovered:
    """A machine with nothing but itself; ``found`` are the answers that it gives instead."""
    absent = dict.fromkeys(
        ("gpu", "topology", "docker.info", "docker.version", "sudo"),
        Output(127, "", "not found"),
    )
    empty = dict.fromkeys(("ports", "gids", "place"), Output(0, "", ""))
    outputs = {"host": Output(0, HOST_LINES, ""), **empty, **absent, **found}
    return discovery.read_answers(Answers(outputs, 0))


def drafted(*nodes: DraftNode) -> tuple[str, Cluster]:
    """The text, and what our reader makes of it."""
    text = inventory_draft.text("lab", "dlperf-orch init gpu01", nodes)
    return text, user_files.judged_cluster(yaml_reader.document(text, "it"))


def node(name: str, address: str, found: Discovered | None, **said: object) -> DraftNode:
    """A node reached by SSH."""
    plain = DraftNode(name, address, "bench", 22, "~/.ssh/id_ed25519", found=found)
    return replace(plain, **said)  # type: ignore[arg-type]  # each test names real fields


def test_a_node_is_declared_as_it_was_observed() -> None:
    """Docker, GPUs by model, the adapters near them alone, the interface of its address."""
    text, found = drafted(
        node("gpu01", "10.0.0.11", answer()), node("gpu02", "10.0.0.12", answer())
    )
    first, second = found.members
    assert (first.runtime, first.sudo, first.user) == ("docker", False, "bench")
    assert first.gpus is not None
    assert (first.gpus.count, first.gpus.model) == (1, "NVIDIA A100-SXM4-80GB")
    assert [hca.name for hca in first.hcas] == [f"mlx5_{n}" for n in (0, 1, 2, 3, 4, 5, 8, 9)]
    assert {(hca.rate_gbps, hca.link_layer) for hca in first.hcas} == {(400, "InfiniBand")}
    assert second.model_copy(update={"name": first.name, "address": first.address}) == first
    assert "# gpu01: adapter left out: mlx5_6 is far from every GPU" in text
    assert "# gpu01: slurm 23.11.4 is there" in text
    assert found.images == ("reference-rn50",)


def test_what_differs_stands_at_its_node() -> None:
    """Adapters that are down, another rate; a node that did not answer has its reason."""
    down = ports("mlx5_0") + ports("mlx5_1", state="1: DOWN")
    other = answer(topology="", ports=down, place="server 10.0.0.12\nroute eno1\n")
    silent = node("gpu03", "10.0.0.13", None, why="no route\nto host", claimed_gpus=8)
    text, found = drafted(
        node("gpu01", "10.0.0.11", answer()), node("gpu02", "10.0.0.12", other), silent
    )
    assert [hca.name for hca in found.members[1].hcas] == ["mlx5_0"]
    assert "mlx5_1 is not active" in text
    assert "# gpu03: was not asked: no route to host" in text
    third = found.members[2]
    assert third.gpus is not None
    assert third.gpus.count == 8


def test_a_jump_host_stands_at_each_node() -> None:
    """Where an inventory takes it: a node's own, though all have the same."""
    jump = "ops@10.0.0.1:2222"
    _, found = drafted(
        node("gpu01", "10.0.0.11", answer(), jump=jump),
        node("gpu02", "10.0.0.12", answer(), jump=jump),
    )
    assert [str(member.jump) for member in found.members] == [jump, jump]


def test_without_docker_tasks_are_plain_processes() -> None:
    """And without GPUs a playbook needs a device; both are said."""
    text, found = drafted(node("n1", "10.0.0.1", without({}), agent=True))
    (only,) = found.members
    assert (only.runtime, only.gpus, only.agent) == ("process", None, True)
    assert "# n1: no Docker (" in text
    assert "playbooks need `device: cpu`" in text
    assert found.images == ()


def test_a_node_without_docker_beside_others_is_told() -> None:
    """A gang has one runtime: the file holds, and says what that node lacks."""
    text, found = drafted(node("n1", "10.0.0.11", answer()), node("n2", "10.0.0.12", without({})))
    assert {member.runtime for member in found.members} == {"docker"}
    assert "# n2: no Docker (" in text
    assert "mend it and ask again, or write `runtime: process` for all nodes" in text


def test_docker_behind_sudo_is_taken() -> None:
    """Where the user alone is refused and `sudo -n docker` answers."""
    refused = Output(1, "", "permission denied while trying to connect to the Docker daemon socket")
    answers = {"docker.info": refused, "docker.version": refused, "sudo": Output(0, "27.1\n", "")}
    _, found = drafted(node("n1", "10.0.0.1", without(answers)))
    assert (found.members[0].runtime, found.members[0].sudo) == ("docker", True)


def test_nobody_answered_and_the_file_holds() -> None:
    """What can be said is how they are reached; nothing is guessed of what they have."""
    known_hosts = "/keys/known_hosts"
    silent = node("n1", "10.0.0.1", None, why="refused", identity=None, known_hosts=known_hosts)
    text = inventory_draft.text("lab", "init", (silent,))
    (only,) = user_files.judged_cluster(yaml_reader.document(text, "it")).members
    assert (only.gpus, only.identity, only.known_hosts) == (None, None, known_hosts)


def test_gpus_of_several_models_are_counted_and_not_named() -> None:
    """The user chooses which of them are to be used."""
    found = answer()
    assert found.facts.gpu is not None
    mixed = replace(found.facts.gpu, models=(*found.models, "NVIDIA T400"))
    facts = replace(found.facts, gpu=mixed)
    text, cluster = drafted(node("n1", "10.0.0.1", replace(found, facts=facts)))
    (only,) = cluster.members
    assert only.gpus is not None
    assert (only.gpus.count, only.gpus.model) == (2, None)
    assert "# n1: GPUs of several models" in text


def test_a_machine_answers_everything_in_one_round_trip() -> None:
    """This one, by the command itself; and one that says nothing in time is an error."""
    probe = discovery.probe("/tmp", nonce="abc123")
    done = subprocess.run(probe.argv, capture_output=True, text=True, timeout=180, check=True)
    assert probe.parse(done.stdout).facts.host.cpus > 0
    with pytest.raises(errors.LogError) as hung:
        discovery.read_answers(Answers({"host": Output(None, "", "")}, 0))
    assert hung.value.code == "HOST-HUNG"


def test_this_machine_is_local() -> None:
    """No login, no interface: nothing else reaches it."""
    here = node("localhost", "127.0.0.1", answer())
    _, found = drafted(here)
    (only,) = found.members
    assert (only.transport, only.interface, only.identity) == ("local", None, None)


def test_roce_is_declared_with_the_index_that_all_adapters_share() -> None:
    """The layer of the greater bandwidth counts; link-local addresses and RoCE v1 do not."""
    lines = [
        f"{hca} 1 {index} {gid} eth0 {kind}"
        for hca, shift in (("mlx5_0", 0), ("mlx5_1", 2))
        for index, gid, kind in (
            (1, "fe80:0000:0000:0000:a288:c2ff:fe5b:03ec", "RoCE v2"),
            (2, "0000:0000:0000:0000:0000:ffff:0b00:0048", "IB/RoCE v1"),
            (3, "0000:0000:0000:0000:0000:ffff:0b00:0048", "RoCE v2"),
            (5 + shift, "0000:0000:0000:0000:0000:ffff:0b01:0048", "RoCE v2"),
        )
    ]
    ethernet = ports("mlx5_0", "mlx5_1", layer="Ethernet") + ports(
        "mlx5_2", rate="100 Gb/sec (4X EDR)"
    )
    said = answer(topology="", ports=ethernet, gids="\n".join(lines))
    text, found = drafted(node("n1", "10.0.0.1", said))
    (only,) = found.members
    assert [(hca.name, hca.link_layer) for hca in only.hcas] == [
        ("mlx5_0", "Ethernet"),
        ("mlx5_1", "Ethernet"),
    ]
    assert only.roce is not None
    assert only.roce.gid_index == 3
    assert "mlx5_2 speaks InfiniBand" in text


def test_no_index_without_a_common_one() -> None:
    """Then NCCL is left to choose."""
    gid = Gid("mlx5_0", 1, 3, "0000:0000:0000:0000:0000:ffff:0b00:0048", "eth0", "RoCE v2")
    said = answer(topology="", ports=ports("mlx5_0", "mlx5_1", layer="Ethernet"))
    for gids in ((gid,), ()):
        _, found = drafted(node("n1", "10.0.0.1", replace(said, gids=gids)))
        assert found.members[0].roce is None


def test_adapters_are_sorted_by_number() -> None:
    """As people count them, names without a number first."""
    said = answer(topology="", ports=ports("mlx5_10", "mlx5_9", "ib"))
    used, left = inventory_draft.adapters(said)
    assert [port.name for port in used] == ["ib", "mlx5_9", "mlx5_10"]
    assert left == ()


def test_ports_that_cannot_be_read_are_left_out() -> None:
    """A rate in other words, another layer, a short line."""
    text = "a|1|4: ACTIVE|2.5 Gb/sec (1X)|InfiniBand\nb|1|4: ACTIVE|fast|InfiniBand\nc|1\nd|x|||\n"
    assert [(port.name, port.rate_gbps) for port in discovery.ports(text)] == [("a", 2)]


@pytest.mark.parametrize(
    ("word", "written"),
    [("no", '"no"'), ("1.2", '"1.2"'), ("10.0.0.1", "10.0.0.1"), ("a: b", '"a: b"'), ("x", "x")],
)
def test_texts_stay_texts_in_yaml(word: str, written: str) -> None:
    """What YAML could take for something else is quoted."""
    assert inventory_draft.scalar(word) == written


JOBS = Jobs("gpu", None, "04:00:00", 16, has_pyxis=False)


def by_slurm(jobs: Jobs, found: Discovered) -> tuple[str, Cluster]:
    """What is written of a partition one node of which said so."""
    asked = (DraftNode("gpu07", "", found=found),)
    text = inventory_draft.text("dgx", "dlperf-orch init --slurm gpu", asked, jobs)
    return text, user_files.judged_cluster(yaml_reader.document(text, "it"))


def test_of_a_partition_no_node_is_named() -> None:
    """One stands for all; how it would be reached by SSH is not said, nor that Slurm is there."""
    text, cluster = by_slurm(JOBS, answer())
    assert "# gpu07 was asked, and stands for all nodes of the partition." in text
    assert 'slurm: {partition: gpu, time: "04:00:00", nodes: 16} # ' in text
    assert cluster.slurm is not None
    assert (cluster.slurm.partition, cluster.slurm.nodes) == ("gpu", 16)
    for word in ("address", "user:", "identity", "scheduler: slurm`", "\nnodes:"):
        assert word not in text
    assert "  runtime: docker\n" in text


def test_pyxis_is_taken_where_srun_has_it() -> None:
    """Before Docker; without settings of Docker's. The account is written where one was given."""
    with_pyxis = replace(JOBS, has_pyxis=True, account="perf")
    text, cluster = by_slurm(with_pyxis, without({}))
    assert "partition: gpu, account: perf, time:" in text
    assert "  runtime: pyxis\n" in text
    assert "shm_size" not in text
    assert "no Docker" not in text
    assert cluster.images == ("reference-rn50",)
    assert "  runtime: process\n" in by_slurm(JOBS, without({}))[0]


def test_what_slurm_knows_of_a_node_is_used() -> None:
    """Its GPUs where nvidia-smi names none, its address for the interface, and nodes that are down.

    The default route is that of another interface, or there is none.
    """
    found = without({})
    known = found.facts.host.addresses or {}
    (interface, addresses), *_ = [(name, at) for name, at in known.items() if at]
    asked = DraftNode("gpu07", addresses[0], found=found, claimed_gpus=8)
    jobs = replace(JOBS, down="gpu09")
    text = inventory_draft.text("dgx", "dlperf-orch init --slurm gpu", (asked,), jobs)
    user_files.judged_cluster(yaml_reader.document(text, "it"))
    assert "  gpus: {count: 8}\n" in text
    assert f"  interface: {interface}\n" in text
    assert "# gpu07: Slurm gives 8 GPUs, and nvidia-smi names none: see whether" in text
    assert "# Not counted in `nodes`: gpu09 (`sinfo -R` says why)\n" in text
    by_ssh = inventory_draft.text("dgx", "dlperf-orch init", (asked,))
    assert "count: 8" not in by_ssh
    assert "nvidia-smi names no GPU; playbooks need `device: cpu`" in by_ssh
