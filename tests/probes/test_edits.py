"""Edits of whole answers, and the facts that each edit changes.

The folder ``edits`` has a file for each answer: lines ``PATTERN => REPLACEMENT``, as of ``re.sub``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from orchestrator import errors
from orchestrator.probes import container, data, docker, gpu, health, host, infiniband, topology
from orchestrator.probes.sections import Answers, Output
from tests import SAMPLES
from tests.probes.answers import HOST_ANSWER, OLD_TABLE, TABLE, V100

IBSTAT = (SAMPLES / "ibstat/linux_rdma_mt4115_unindented.txt").read_text()
DOCKER_INFO = (SAMPLES / "docker/debian_20.10.24_info.json").read_text()
DOCKER_VERSION = (SAMPLES / "docker/debian_20.10.24_version.json").read_text()
DOCKER_BESIDE = "free_kib 104857600\nhook nvidia-container-runtime-hook\ncdi\n"
DATA_ANSWER = f"stamp 1\ndigest {'4ed83a6f' * 8}\nfiles 3\nsize_bytes 12\nend\n"


def parse_docker(text: str) -> object:
    """Parse both answers of Docker's client, the version in the last line."""
    info, _, version = text.rstrip("\n").rpartition("\n")
    return docker.parse({docker.INFO: Output(0, info, ""), docker.VERSION: Output(0, version, "")})


def parse_limits(text: str) -> object:
    """Parse the answer of a container that is asked for its limits alone."""
    return container.read_answers(Answers({container.LIMITS: Output(0, text, "")}, 0.0))


ANSWERS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "gpu": (gpu.parse, V100),
    "topology": (topology.parse, TABLE),
    "topology_old": (topology.parse, OLD_TABLE),
    "ibstat": (infiniband.parse, IBSTAT),
    "host": (host.parse, HOST_ANSWER),
    "health": (health.parse, (SAMPLES / "health/node.txt").read_text()),
    "docker": (parse_docker, f"{DOCKER_INFO}{DOCKER_BESIDE}{DOCKER_VERSION}"),
    "data": (partial(data.parse, path="/data/image"), DATA_ANSWER),
    "limits": (parse_limits, "memlock 8192\nshm_kib 16777216\ndevice rdma_cm\ndevice uverbs0\n"),
}


def differences(whole: object, part: object, path: str = "") -> Iterator[str]:
    """Yield the values of ``part`` that are not those of ``whole``, by path."""
    if whole == part:
        return
    if is_dataclass(whole) and type(whole) is type(part):
        for name in (field.name for field in fields(whole)):
            yield from differences(getattr(whole, name), getattr(part, name), f"{path}.{name}")
    elif isinstance(whole, Mapping) and isinstance(part, Mapping):
        for name in {**whole, **part}:
            yield from differences(whole.get(name), part.get(name), f"{path}.{name}")
    elif isinstance(whole, tuple) and isinstance(part, tuple) and len(whole) == len(part):
        for at, (old, new) in enumerate(zip(whole, part, strict=True)):
            yield from differences(old, new, f"{path}[{at}]")
    else:
        yield f"    {path.lstrip('.') or 'all'} = {part!r}"


@pytest.mark.parametrize("name", ANSWERS)
def test_an_edit_changes_these_facts(name: str, snapshot: SnapshotAssertion) -> None:
    parse, answer = ANSWERS[name]
    whole, shown = parse(answer), []
    for line in Path(__file__).with_name("edits").joinpath(f"{name}.txt").read_text().splitlines():
        shown.append(line)
        if line.startswith("#"):
            continue
        old, _, new = line.partition(" =>")
        text, edits = re.subn(old, new.removeprefix(" "), answer, count=1, flags=re.DOTALL)
        assert edits == 1, line
        try:
            shown += differences(whole, parse(text))
        except errors.LogError as error:
            shown.append(f"    refused, {error.code}: {error.cause}")
    assert "\n".join(shown) == snapshot
