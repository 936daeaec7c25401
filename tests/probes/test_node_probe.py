"""The composite probe: what a node is asked, and what its answer is taken for."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.checks import gpu as gpu_checks
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import (
    DriverFacts,
    InfinibandFacts,
    NodeAnswer,
    Silent,
    VerbsFacts,
)
from orchestrator.model.node import Node
from orchestrator.model.problem import Problem
from orchestrator.model.site import GpuSummary, Topology
from orchestrator.probes import node as node_probe
from orchestrator.probes import sections
from tests import SAMPLES

NONCE = "n0nce"
EVERYTHING = {
    "gpus": {"count": 1},
    "hcas": [{"name": "mlx5_0", "rate_gbps": 100}],
}


def member(**defaults: object) -> Node:
    """The only node of an inventory that says these things."""
    said = {"name": "testers", "defaults": defaults, "nodes": [{"name": "n1", "address": "::2"}]}
    return Cluster.model_validate_json(json.dumps(said)).members[0]


def ask(node: Node, tools: Path, limit_s: int | None = None) -> NodeAnswer:
    """What this machine answers with stand-ins for hardware first in its PATH."""
    asked = node_probe.questions(node, python=sys.executable, folder=str(tools))
    limited = [replace(section, limit_s=limit_s or section.limit_s) for section in asked]
    probe = sections.probe("facts", limited, node_probe.read_answers, nonce=NONCE)
    env = {"PATH": f"{tools}:/usr/bin:/bin"}
    done = subprocess.run(
        probe.argv, env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return probe.parse(done.stdout)


def tool(folder: Path, name: str, script: str) -> None:
    """A stand-in for a program."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Programs that print what real ones printed."""
    shutil.copytree(SAMPLES, tmp_path / "samples")
    samples = tmp_path / "samples"
    xml, topo = samples / "nvidia-smi/telegraf_tesla-t4.xml", samples / "topo"
    topo /= "sysuest_v100_4gpu_4mlx5_node.txt"
    tool(tmp_path, "nvidia-smi", f'[ "$1" = topo ] && exec cat {topo}; exec cat {xml}')
    tool(tmp_path, "ibstat", f"exec cat {samples}/ibstat/dlperf_seed_vs002_mt4115.txt")
    tool(tmp_path, "ibv_devinfo", "echo No IB devices found >&2; exit 255")
    tool(tmp_path, "ofed_info", "echo MLNX_OFED_LINUX-4.9-0.1.7.0:")
    return tmp_path


def test_node_is_asked_for_what_its_inventory_declares() -> None:
    """No GPUs, no adapters, no Docker: no question about them."""
    plain = node_probe.questions(member(runtime="process"), python="python3", folder="/x")
    assert [question.name for question in plain] == ["host"]
    full = node_probe.questions(
        member(**EVERYTHING, data={"imagenet": "/data/image"}, sudo=True),
        python="python3",
        folder="/x",
    )
    assert [section.name for section in full] == [
        "host",
        "gpu",
        "topology",
        "nvlink",
        "nvlink.errors",
        "ibstat",
        "verbs",
        "ofed",
        "health",
        "docker.info",
        "docker.version",
        "data.imagenet",
    ]
    assert full[9].argv[-3:] == full[10].argv[:3] == ("sudo", "-n", "docker")


def test_one_round_trip_brings_every_fact(tools: Path) -> None:
    """Each answer is read by its own parser, and the site file keeps the summary."""
    answer = ask(member(**EVERYTHING, runtime="process"), tools)
    assert isinstance(answer.gpu, DriverFacts)
    assert isinstance(answer.topology, Topology)
    assert isinstance(answer.infiniband, InfinibandFacts)
    assert answer.verbs == VerbsFacts((), ())
    assert (answer.ofed, answer.docker, answer.data) == ("4.9-0.1.7.0", None, {})
    facts = node_probe.facts(answer)
    assert facts.host == answer.host
    assert facts.gpu == GpuSummary(
        "515.105.01",
        "11.7",
        ("Tesla T4",),
        ("00000000:00:1E.0",),
        (15360,),
        (70.0,),
        ("90.04.84.00.06",),
    )
    assert facts.topology is not None
    assert facts.topology.links["GPU0"]["mlx5_0"] == "PIX"
    again = node_probe.facts(ask(member(**EVERYTHING, runtime="process"), tools))
    assert facts.topology == again.topology
    assert facts.topology.digest is not None
    assert facts.infiniband == answer.infiniband.ports


def test_hung_nvidia_smi_spoils_nothing_else(tools: Path) -> None:
    """The rest of the node's facts is there; the hung question says so."""
    tool(tools, "nvidia-smi", "exec sleep 30")
    answer = ask(member(**EVERYTHING, runtime="process"), tools, limit_s=2)
    assert answer.gpu == Silent("HUNG", "")
    assert answer.topology == Silent("HUNG", "")
    assert isinstance(answer.infiniband, InfinibandFacts)
    facts = node_probe.facts(answer)
    assert (facts.gpu, facts.topology) == (None, None)


def test_absent_programs_are_told_from_those_that_fail(tools: Path) -> None:
    """Each keeps the words of the shell or of the program."""
    for name in ("nvidia-smi", "ibstat", "ibv_devinfo", "ofed_info"):
        (tools / name).unlink()
    tool(tools, "nvidia-smi", "echo 'Failed to initialize NVML: Unknown Error'; exit 255")
    answer = ask(member(**EVERYTHING, runtime="process"), tools)
    assert answer.gpu == Silent("UNREADABLE", "Failed to initialize NVML: Unknown Error")
    assert isinstance(answer.infiniband, Silent)
    assert isinstance(answer.verbs, Silent)
    assert (answer.infiniband.code, answer.verbs.code) == ("ABSENT", "ABSENT")
    assert answer.ofed is None
    assert node_probe.facts(answer).infiniband is None


def test_whole_answer_of_a_command_that_failed_is_doubted(tools: Path) -> None:
    """Its exit status becomes a problem of the fact, with what it complained of."""
    sample = tools / "samples/ibstat/dlperf_seed_vs002_mt4115.txt"
    tool(tools, "ibstat", f"cat {sample}; echo \"ibpanic: stat of 'mlx5_8' failed\" >&2; exit 255")
    tool(tools, "nvidia-smi", f"cat {tools}/samples/nvidia-smi/telegraf_tesla-t4.xml; exit 15")
    answer = ask(member(**EVERYTHING, runtime="process"), tools)
    assert isinstance(answer.infiniband, InfinibandFacts)
    assert isinstance(answer.gpu, DriverFacts)
    (problem,) = answer.infiniband.problems
    assert problem.code == "EXIT-STATUS"
    assert problem.message == "the command ended with 255: ibpanic: stat of 'mlx5_8' failed"
    assert answer.gpu.problems[-1].code == "EXIT-STATUS"
    assert answer.gpu.problems[-1].message == ("the command ended with 15: no message")


INFOROM = "WARNING: infoROM is corrupted at gpu 0000:67:00.0"


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (f"echo '{INFOROM}'; exit 14", INFOROM),
        (f"echo '{INFOROM}'", INFOROM),
        (f"echo '{INFOROM}' >&2; exit 14", INFOROM),
        (f"echo '{INFOROM}' >&2", INFOROM),
    ],
)
def test_a_warning_of_nvidia_smi_keeps_its_data(tools: Path, ending: str, said: str) -> None:
    """It is shown wherever it stands, once, and the wiring is compared as ever."""
    tool(
        tools,
        "nvidia-smi",
        f"case $1 in -q) cat {tools}/samples/nvidia-smi/telegraf_tesla-t4.xml ;;"
        f" *) cat {tools}/samples/topo/superbench_v100pcie_2gpu.txt ;; esac; {ending}",
    )
    answer = ask(member(**EVERYTHING, runtime="process"), tools)
    assert isinstance(answer.gpu, DriverFacts)
    assert answer.gpu.gpus[0].model == "Tesla T4"
    assert answer.gpu.problems == (Problem("GPU-WARNING", said),)
    assert isinstance(answer.topology, Topology)
    assert answer.topology.problems == ()
    (found,) = gpu_checks.gpus(member(gpus={}), replace(answer.gpu, gpus=()))
    assert (found.severity, found.code, found.seen) == ("warning", "GPU-WARNING", said)


@pytest.mark.parametrize(
    ("does", "code", "words"),
    [
        ("echo words; exit 99", "GPU-QUERY-FAILED", "words"),
        ("exit 0", "GPU-QUERY-FAILED", "not one whole XML document"),
    ],
)
def test_a_driver_that_prints_no_document_failed(
    tools: Path, does: str, code: str, words: str
) -> None:
    """Its own words are shown; also where the program prints nothing."""
    tool(tools, "nvidia-smi", does)
    answer = ask(member(**EVERYTHING, runtime="process"), tools)
    (found,) = gpu_checks.gpus(member(gpus={}), answer.gpu)
    assert found.code == code
    assert words in found.seen


def test_table_with_problems_has_no_digest_to_compare(tools: Path) -> None:
    """Half a table is not another wiring."""
    table = (SAMPLES / "topo/sysuest_v100_4gpu_4mlx5_node.txt").read_text()
    (tools / "cut").write_text("".join(table.splitlines(keepends=True)[:4]))
    tool(tools, "nvidia-smi", f"exec cat {tools}/cut")
    topology = node_probe.facts(ask(member(gpus={"count": 4}, runtime="process"), tools)).topology
    assert topology is not None
    assert topology.digest is None


def test_data_sets_are_looked_at(tmp_path: Path) -> None:
    """There, empty, a file, or not there."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "part-0").touch()
    (tmp_path / "void").mkdir()
    (tmp_path / "file").touch()
    paths = {name: str(tmp_path / name) for name in ("full", "void", "file", "none")}
    answer = ask(member(runtime="process", data=paths), tmp_path)
    assert answer.data == {
        "full": "present",
        "void": "empty",
        "file": "present",
        "none": "missing",
    }


def said(host: str, status: str = "0", data: str = "0\npresent\n") -> str:
    """A doctored answer of a node with one data set."""
    return (
        f"{NONCE} host {status}\n{host}\n{NONCE} host said\n\n"
        f"{NONCE} data.set {data}\n{NONCE} data.set said\n\n{NONCE} end 1600180133.5\n"
    )


HOST = """\
clock 1600180100.0
hostname VS002
kernel Linux 4.4.0-116-generic
boot_id 5f0b3c1e
cpus 48
memory_kib 395968000
free_disk_kib 1048576
load 0.52
"""


DOCTORED = node_probe.questions(
    member(runtime="process", data={"set": "/data/set"}), python="python3", folder="/x"
)


@pytest.mark.parametrize(
    ("data", "state"),
    [
        ("0\npresent\n", "present"),
        ("0\nunreadable\n", "unreadable"),
        ("0\n", "unreadable"),
        ("2\nls: oh\n", "unreadable"),
        ("124\n", "hung"),
        ("hung\n", "hung"),
    ],
)
def test_data_set_that_gives_no_clear_answer_is_not_readable(data: str, state: str) -> None:
    """Only the word itself counts; a time-out is a hung mount."""
    probe = sections.probe("facts", DOCTORED, node_probe.read_answers, nonce=NONCE)
    assert probe.parse(said(HOST, data=data)).data == {"set": state}


def test_clock_is_read_after_everything_else() -> None:
    """A question that took twenty seconds does not make the clock wrong by them."""
    probe = sections.probe("facts", DOCTORED, node_probe.read_answers, nonce=NONCE)
    assert probe.parse(said(HOST)).host.clock_s == 1600180133.5


def test_node_that_cannot_say_what_it_is_is_refused() -> None:
    """Without the machine's own facts nothing else counts."""
    probe = sections.probe("facts", DOCTORED, node_probe.read_answers, nonce=NONCE)
    with pytest.raises(errors.LogError, match="gave no host facts in time") as raised:
        probe.parse(said("clock", status="124"))
    assert raised.value.code == "HOST-HUNG"
