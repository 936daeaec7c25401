"""Questions to a node and to a container in one round trip, and how their answers are read."""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import (
    DriverFacts,
    InfinibandFacts,
    NodeAnswer,
    Silent,
    VerbsFacts,
)
from orchestrator.model.node import Node
from orchestrator.model.site import GpuSummary
from orchestrator.probes import container, sections
from orchestrator.probes import node as node_probe
from orchestrator.probes.sections import Output, Section
from tests import SAMPLES
from tests.commands import checked, run
from tests.probes.answers import HOST_LINES

NONCE = "n0nce"
HCA = {"name": "mlx5_0", "rate_gbps": 100}
EVERYTHING = {"gpus": {"count": 1}, "hcas": [HCA]}
T4 = SAMPLES / "nvidia-smi/telegraf_tesla-t4.xml"
SEED = SAMPLES / "ibstat/dlperf_seed_vs002_mt4115.txt"
V100S = SAMPLES / "topo/sysuest_v100_4gpu_4mlx5_node.txt"


def member(**defaults: object) -> Node:
    """Return the only node of an inventory with these defaults."""
    said = {"name": "testers", "defaults": defaults, "nodes": [{"name": "n1", "address": "::2"}]}
    return Cluster.model_validate_json(json.dumps(said)).members[0]


def asked(node: Node, folder: str = "/x") -> Sequence[Section]:
    return node_probe.questions(node, python=sys.executable, folder=folder)


def ask(node: Node, tools: Path, limit_s: int | None = None) -> NodeAnswer:
    """Ask this machine, with stand-ins for hardware first in its PATH."""
    limited = [replace(it, limit_s=limit_s or it.limit_s) for it in asked(node, str(tools))]
    probe = sections.probe("facts", limited, node_probe.read_answers, nonce=NONCE)
    done = run(probe.argv, env={"PATH": f"{tools}:/usr/bin:/bin"}, timeout_s=60)
    return probe.parse(checked(done).stdout)


def tool(folder: Path, name: str, script: str) -> None:
    """Write a stand-in for a program."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Programs that print what real ones printed."""
    tool(tmp_path, "nvidia-smi", f'[ "$1" = topo ] && exec cat {V100S}; exec cat {T4}')
    tool(tmp_path, "ibstat", f"exec cat {SEED}")
    tool(tmp_path, "ibv_devinfo", "echo No IB devices found >&2; exit 255")
    tool(tmp_path, "ofed_info", "echo MLNX_OFED_LINUX-4.9-0.1.7.0:")
    return tmp_path


@pytest.mark.parametrize(
    ("defaults", "names"),
    [
        ({"runtime": "process"}, "host"),
        (
            {**EVERYTHING, "data": {"imagenet": "/data/image"}, "sudo": True},
            "host gpu topology nvlink nvlink.errors ibstat verbs ofed health docker.info"
            " docker.version data.imagenet",
        ),
        (
            {"runtime": "process", "hcas": [{**HCA, "link_layer": "Ethernet"}]},
            "host ibstat verbs ofed gids health",
        ),
    ],
)
def test_a_node_is_asked_for_what_its_inventory_declares(
    defaults: dict[str, object], names: str
) -> None:
    questions = {question.name: question for question in asked(member(**defaults))}
    assert list(questions) == names.split()
    if "sudo" in defaults:
        assert questions["docker.info"].argv[-3:] == ("sudo", "-n", "docker")
        assert questions["docker.version"].argv[:3] == ("sudo", "-n", "docker")


def test_one_round_trip_brings_every_fact(tools: Path) -> None:
    """Each answer is read by its own parser, and the site file keeps the summary."""
    answer = ask(member(**EVERYTHING, runtime="process"), tools)
    assert isinstance(answer.gpu, DriverFacts)
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
    assert facts.topology.digest is not None
    assert facts.infiniband == answer.infiniband.ports


INFOROM = "WARNING: infoROM is corrupted at gpu 0000:67:00.0"
WARNED = f"case $1 in -q) cat {T4} ;; *) cat {V100S} ;; esac; echo '{INFOROM}'"
NVML = "Failed to initialize NVML: Unknown Error"
PANIC = "ibpanic: stat of 'mlx5_8' failed"


def gist(answer: NodeAnswer) -> str:
    """Return the problems in the facts about GPUs, wiring and adapters, or why there are none."""
    said = []
    for fact in (answer.gpu, answer.topology, answer.infiniband, answer.verbs):
        if isinstance(fact, Silent):
            said.append(f"{fact.code} {fact.message}".strip())
        elif not isinstance(fact, VerbsFacts | None):
            said += [f"{problem.code} {problem.message}" for problem in fact.problems]
    return "; ".join(said)


@pytest.mark.parametrize(
    ("program", "script", "expected"),
    [
        # A question that hangs spoils no other answer
        ("nvidia-smi", "exec sleep 30", "HUNG; HUNG"),
        ("nvidia-smi", f"echo '{NVML}'; exit 255", f"UNREADABLE {NVML}; UNREADABLE {NVML}"),
        ("ibstat", "exit 127", "ABSENT"),
        ("ibv_devinfo", "exit 127", "ABSENT"),
        # An exit status beside a whole answer is a problem, but for that of a warning
        (
            "ibstat",
            f'cat {SEED}; echo "{PANIC}" >&2; exit 255',
            f"EXIT-STATUS the command ended with 255: {PANIC}",
        ),
        (
            "nvidia-smi",
            f"[ $1 = -q ] && cat {T4} && exit 15; cat {V100S}",
            "EXIT-STATUS the command ended with 15: no message",
        ),
        ("nvidia-smi", f"{WARNED}; exit 14", f"GPU-WARNING {INFOROM}"),
        ("nvidia-smi", f"{WARNED} >&2; exit 14", f"GPU-WARNING {INFOROM}"),
        ("nvidia-smi", f"{WARNED} >&2", f"GPU-WARNING {INFOROM}"),
    ],
)
def test_programs_that_fail_are_silent_or_have_a_problem(
    tools: Path, program: str, script: str, expected: str
) -> None:
    tool(tools, program, script)
    limit_s = 2 if "sleep" in script else None
    assert gist(ask(member(**EVERYTHING, runtime="process"), tools, limit_s)) == expected


def test_facts_that_are_silent_are_not_kept() -> None:
    driver = replace(doctored(), gpu=Silent("HUNG", ""), topology=Silent("HUNG", ""))
    facts = node_probe.facts(replace(driver, infiniband=Silent("ABSENT", "")))
    assert (facts.gpu, facts.topology, facts.infiniband) == (None, None, None)


DOCTORED = asked(member(runtime="process", data={"set": "/data/set"}))


def doctored(status: str = "0", data: str = "0\npresent\n") -> NodeAnswer:
    """Parse the answer of a node with one data set."""
    return sections.probe("facts", DOCTORED, node_probe.read_answers, nonce=NONCE).parse(
        f"{NONCE} host {status}\n{HOST_LINES}\n{NONCE} host said\n\n"
        f"{NONCE} data.set {data}\n{NONCE} data.set said\n\n{NONCE} end 1600180133.5\n"
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
def test_a_data_set_without_a_clear_answer_is_not_readable(data: str, state: str) -> None:
    assert doctored(data=data).data == {"set": state}


def test_the_clock_is_read_after_everything_else() -> None:
    """A question that took twenty seconds does not make the clock wrong by them."""
    assert doctored().host.clock_s == 1600180133.5


def test_a_node_without_facts_of_its_machine_is_refused() -> None:
    with pytest.raises(errors.LogError, match="gave no host facts in time") as raised:
        doctored(status="124")
    assert raised.value.code == "HOST-HUNG"


def test_a_container_is_asked_for_what_its_node_declares() -> None:
    assert [question.name for question in container.questions(member())] == ["limits"]
    names = [question.name for question in container.questions(member(**EVERYTHING))]
    assert names == ["limits", "gpu", "ibstat", "verbs", "ofed"]


def test_data_sets_that_the_node_can_read_are_mounted_and_looked_at() -> None:
    node = member(data={"imagenet": "/data/image", "gpt": "/data/gpt"})
    (mount,) = container.data_mounts(node, ["imagenet"])
    assert (mount.source, mount.target) == ("/data/image", "/mnt/data.imagenet")
    assert mount.read_only
    limits, images = container.questions(node, [mount])
    outputs = {limits.name: Output(0, "memlock 8192\n", ""), images.name: Output(0, "missing", "")}
    facts = container.read_answers(sections.Answers(outputs, 1.5))
    assert facts.data == {"imagenet": "missing"}


def test_the_script_for_containers_answers_under_a_plain_shell(tools: Path) -> None:
    """Programs of the image come first in its PATH."""
    tool(tools, "ibv_devinfo", f"exec cat {SAMPLES}/ibverbs/pib_issue2_no_driver.txt")
    (tools / "nvidia-smi").unlink()
    questions = container.questions(member(**EVERYTHING))
    probe = sections.probe("container", questions, container.read_answers, nonce=NONCE)
    done = run(probe.argv, env={"PATH": f"{tools}:/usr/bin:/bin"}, timeout_s=60)
    facts = probe.parse(checked(done).stdout)
    assert isinstance(facts.gpus, Silent)
    assert facts.gpus.code == "ABSENT"
    assert isinstance(facts.infiniband, InfinibandFacts)
    assert isinstance(facts.verbs, VerbsFacts)
    assert facts.ofed == "4.9-0.1.7.0"
    assert facts.shm_mib == shutil.disk_usage("/dev/shm").total >> 20
