"""The Docker probe: what real engines answer, and what stands beside them."""

import json
import subprocess
from pathlib import Path

import pytest

import tests
from orchestrator.model.facts import Silent
from orchestrator.model.site import DockerFacts
from orchestrator.probes import docker
from orchestrator.probes.sections import Output
from tests.probes.answers import DEBIAN

SAMPLES = tests.SAMPLES / "docker"
INFO = (SAMPLES / "debian_20.10.24_info.json").read_text()
VERSION = (SAMPLES / "debian_20.10.24_version.json").read_text()
DOWN_INFO = (SAMPLES / "cli_28.2.2_down_info.json").read_text()
DOWN_VERSION = (SAMPLES / "cli_28.2.2_down_version.json").read_text()
# Standard error of CLI 28.2.2, with the engine stopped and for a user outside its group.
DOWN = (
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
    " Is the docker daemon running?\n"
)

DENIED = (
    "permission denied while trying to connect to the Docker daemon socket at"
    " unix:///var/run/docker.sock\n"
)

BESIDE = """\
free_kib 104857600
hook nvidia-container-runtime-hook
toolkit NVIDIA Container Toolkit CLI version 1.12.0
cdi /etc/cdi/nvidia.yaml
config read
{"log-driver": "json-file", "log-opts": {"max-size": "100m"}}
"""


def parse(info: Output | str, version: str = VERSION, beside: str = BESIDE) -> object:
    """The fact in three answers."""
    return docker.parse(
        {
            docker.INFO: Output(0, info, "") if isinstance(info, str) else info,
            docker.VERSION: Output(0, version, ""),
            docker.BESIDE: Output(0, beside, ""),
        }
    )


def changed(**values: object) -> str:
    """Debian's answer with other values."""
    return json.dumps({**json.loads(INFO), **values})


def test_engine_is_read_as_it_answers() -> None:
    """Engine and interface versions, runtimes, disk, log settings."""
    assert parse(INFO) == DEBIAN


def test_nothing_asked_is_nothing_known() -> None:
    """A node that runs plain processes has no engine to ask."""
    assert docker.parse({}) is None


@pytest.mark.parametrize(
    ("values", "ways"),
    [
        ({}, ("gpus",)),
        ({"CDISpecDirs": ["/etc/cdi"]}, ("cdi", "gpus")),
        ({"CDISpecDirs": []}, ("gpus",)),
        ({"Runtimes": {"runc": {"path": "runc"}, "nvidia": {"path": "x"}}}, ("runtime", "gpus")),
        ({"Runtimes": None}, ("gpus",)),
    ],
)
def test_ways_to_gpus_are_those_of_the_engine(values: dict[str, object], ways: object) -> None:
    """A CDI file counts only for an engine that reads such files."""
    facts = parse(changed(**values))
    assert isinstance(facts, DockerFacts)
    assert facts.gpu_ways == ways


def test_bare_engine_has_no_way_to_gpus() -> None:
    """Nothing of NVIDIA's installed, its configuration and disk not readable."""
    facts = parse(INFO, beside="toolkit \nfree_kib \n")
    assert isinstance(facts, DockerFacts)
    assert facts.gpu_ways == ()
    assert (facts.toolkit, facts.free_mib, facts.log_opts) == (None, None, None)
    facts = parse(INFO, beside="")
    assert isinstance(facts, DockerFacts)
    assert facts.toolkit is None


@pytest.mark.parametrize(
    ("config", "log_opts"),
    [("{}", {}), ('{"log-opts": {"max-size": 5}}', None), ("{", None), ("", None)],
)
def test_log_settings_are_known_only_if_they_could_be_read(
    config: str, log_opts: dict[str, str] | None
) -> None:
    """A file that is broken or not there says nothing."""
    facts = parse(INFO, beside=f"config read\n{config}\n")
    assert isinstance(facts, DockerFacts)
    assert facts.log_opts == log_opts


def test_proxies_are_named_without_their_values() -> None:
    """An address of a proxy may hold a password."""
    facts = parse(changed(HttpProxy="http://u:secret@p:3128", HttpsProxy="http://p:3128"))
    assert isinstance(facts, DockerFacts)
    assert facts.proxies == ("HttpProxy", "HttpsProxy")
    assert "secret" not in repr(facts)


@pytest.mark.parametrize(
    ("info", "code"),
    [
        (Output(1, DOWN_INFO, DOWN), "DOWN"),
        (Output(1, DOWN_INFO, DENIED), "DENIED"),
        (Output(1, DOWN_INFO, f"Got {DENIED}"), "DENIED"),
        (Output(1, "", "sudo: a password is required\n"), "DENIED"),
        (Output(1, "", "sudo: docker: command not found\n"), "ABSENT"),
        (Output(127, "", "sh: 1: docker: not found\n"), "ABSENT"),
        (Output(None, "", ""), "HUNG"),
        (Output(1, "", "client version 1.50 is too new. Maximum is 1.41\n"), "REFUSED"),
    ],
)
def test_engine_that_cannot_be_asked_is_told_apart(info: Output, code: str) -> None:
    """Down, forbidden, absent, hung and of another version want different remedies."""
    silent = parse(info, DOWN_VERSION)
    assert isinstance(silent, Silent)
    assert (silent.code, silent.message) == (code, info.err.strip())


def test_answer_of_the_client_alone_is_no_answer_of_an_engine() -> None:
    """Older clients print it with exit status 0."""
    assert parse(DOWN_INFO, DOWN_VERSION) == Silent("DOWN", DOWN_VERSION.strip()[:300])
    assert parse(changed(ServerErrors=["oh no"])) == Silent("DOWN", "oh no")
    silent = parse(INFO, '{"Server": {"ApiVersion": ""}}')
    assert isinstance(silent, Silent)
    assert silent.code == "DOWN"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"Driver": 3}'])
def test_answer_that_is_no_json_of_docker_is_refused(text: str) -> None:
    """It is not taken for an engine without properties."""
    silent = parse(text)
    assert isinstance(silent, Silent)
    assert silent.code == "UNREADABLE"


def test_engine_that_hangs_on_the_third_question_hangs() -> None:
    """Half of the facts are none."""
    answers = {
        docker.INFO: Output(0, INFO, ""),
        docker.VERSION: Output(0, VERSION, ""),
        docker.BESIDE: Output(None, "", ""),
    }
    assert docker.parse(answers) == Silent("HUNG", "")


def test_script_looks_where_the_engine_keeps_images(tmp_path: Path) -> None:
    """The real script with a stand-in for the client that names a folder not made yet."""
    client = tmp_path / "docker"
    client.write_text(f'#!/bin/sh\n[ "$1" = info ] && echo {tmp_path}/not/made\n')
    client.chmod(0o755)
    (*_, beside) = docker.sections(sudo=False)
    argv = (*beside.argv[:-1], str(client))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    facts = parse(INFO, beside=done.stdout)
    assert isinstance(facts, DockerFacts)
    assert facts.free_mib is not None
    assert facts.free_mib > 0
    assert beside.argv[-1] == "docker"
