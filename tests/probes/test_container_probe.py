"""The probe inside a container: the real script, and doctored answers that are refused."""

import json
import subprocess
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.cluster import Cluster
from orchestrator.model.facts import ContainerFacts, InfinibandFacts, Silent
from orchestrator.model.node import Node
from orchestrator.probes import container, sections
from tests import SAMPLES

NONCE = "n0nce"
LIMITS = """\
memlock 8192
shm_kib 16777216
device rdma_cm
device uverbs0
"""


def member(**defaults: object) -> Node:
    """The only node of an inventory that says these things."""
    said = {"name": "testers", "defaults": defaults, "nodes": [{"name": "n1", "address": "::2"}]}
    return Cluster.model_validate_json(json.dumps(said)).members[0]


def read(limits: str) -> ContainerFacts:
    """What a doctored answer means."""
    questions = container.questions(member())
    probe = sections.probe("container", questions, container.read_answers, nonce=NONCE)
    text = f"{NONCE} limits 0\n{limits}\n{NONCE} limits said\n\n{NONCE} end 1.5\n"
    return probe.parse(text)


def test_container_is_asked_for_what_its_node_declares() -> None:
    """GPUs and adapters only where there are some."""
    assert [question.name for question in container.questions(member())] == ["limits"]
    node = member(gpus={"count": 2}, hcas=[{"name": "mlx5_0", "rate_gbps": 100}])
    names = [question.name for question in container.questions(node)]
    assert names == ["limits", "gpu", "ibstat", "verbs", "ofed"]


def test_data_sets_that_are_mounted_are_looked_at() -> None:
    """Each at a place of its own; those that the node itself cannot read are left out."""
    node = member(data={"imagenet": "/data/image", "gpt": "/data/gpt"})
    mounts = container.data_mounts(node, ["imagenet"])
    assert [(it.source, it.target, it.read_only) for it in mounts] == [
        ("/data/image", "/mnt/data.imagenet", True)
    ]
    questions = container.questions(node, mounts)
    assert [question.name for question in questions] == ["limits", "data.imagenet"]
    said = f"{NONCE} data.imagenet 0\nunreadable\n\n{NONCE} data.imagenet said\n\n"
    text = f"{NONCE} limits 0\n{LIMITS}\n{NONCE} limits said\n\n{said}{NONCE} end 1.5\n"
    facts = sections.probe("container", questions, container.read_answers, nonce=NONCE).parse(text)
    assert facts.data == {"imagenet": "unreadable"}


def test_real_script_answers_under_a_plain_shell(tmp_path: Path) -> None:
    """Limits are this machine's; programs of the image come first in its PATH."""
    stubs = {
        "ibstat": f"exec cat {SAMPLES}/ibstat/dlperf_seed_vs002_mt4115.txt",
        "ibv_devinfo": f"exec cat {SAMPLES}/ibverbs/pib_issue2_no_driver.txt",
        "ofed_info": "echo MLNX_OFED_LINUX-4.9-0.1.7.0:",
    }
    for name, script in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    node = member(gpus={"count": 2}, hcas=[{"name": "mlx5_0", "rate_gbps": 100}])
    questions = container.questions(node)
    probe = sections.probe("container", questions, container.read_answers, nonce=NONCE)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        probe.argv, env=env, capture_output=True, text=True, timeout=60, check=True
    )
    facts = probe.parse(done.stdout)
    assert isinstance(facts.gpus, Silent)
    assert facts.gpus.code == "ABSENT"
    assert isinstance(facts.infiniband, InfinibandFacts)
    assert facts.verbs is not None
    assert facts.ofed == "4.9-0.1.7.0"


def test_limits_are_read() -> None:
    """KiB to MiB for memory that is shared; unlimited is None."""
    assert read(LIMITS) == ContainerFacts(
        gpus=None,
        infiniband=None,
        verbs=None,
        ofed=None,
        devices=("rdma_cm", "uverbs0"),
        memlock_kib=8192,
        shm_mib=16384,
    )


def test_shared_memory_that_is_no_file_system_of_its_own_is_none() -> None:
    """The script prints nothing then."""
    facts = read("memlock unlimited\ndevice \n")
    assert (facts.shm_mib, facts.devices, facts.memlock_kib) == (0, (), None)


@pytest.mark.parametrize("limits", ["", "memlock root\n"])
def test_limits_that_cannot_be_read_are_refused(limits: str) -> None:
    """Missing or no number."""
    with pytest.raises(errors.LogError, match="needed a number") as raised:
        read(limits)
    assert raised.value.code == "CONTAINER-FACTS"
