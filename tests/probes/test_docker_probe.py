"""The Docker probe: what real engines answer, and what the script finds beside them."""

import json
import shutil
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
INFO_29 = (SAMPLES / "29.7.2_info.json").read_text()
VERSION_29 = (SAMPLES / "29.7.2_version.json").read_text()
DOWN_INFO = (SAMPLES / "cli_28.2.2_down_info.json").read_text()
DOWN_VERSION = (SAMPLES / "cli_28.2.2_down_version.json").read_text()
# Standard error of CLI 28.2.2, with the engine stopped and for a user outside its group.
DOWN = (
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
    " Is the docker daemon running?\n"
)
# Of CLI 29: moby/moby, client/request.go.
DOWN_29 = (
    "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is"
    " correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such file"
    " or directory\n"
)
DENIED = (
    "permission denied while trying to connect to the Docker daemon socket at"
    " unix:///var/run/docker.sock\n"
)

PODMAN = "Emulate Docker CLI using podman. Create /etc/containers/nodocker to quiet msg.\n"

BESIDE = """\
free_kib 104857600
hook nvidia-container-runtime-hook
cdi
"""


def parse(info: Output | str, version: str = VERSION, beside: str = BESIDE) -> object:
    """Parse both answers; ``beside`` follows the engine's own."""
    if isinstance(info, str):
        info = Output(0, f"{info.strip()}\n{beside}", "")
    return docker.parse({docker.INFO: info, docker.VERSION: Output(0, version, "")})


def changed(**values: object) -> str:
    """Return Debian's answer with other values, written as Docker writes it."""
    return json.dumps({**json.loads(INFO), **values}, separators=(",", ":"))


def test_an_engine_is_read_as_it_answers() -> None:
    """A fresh Docker 29 keeps images in containerd's folder, which the engine does not name."""
    assert parse(INFO) == DEBIAN
    facts = parse(INFO_29, VERSION_29, f"root /var/lib/containerd\n{BESIDE}")
    assert isinstance(facts, DockerFacts)
    assert (facts.server_version, facts.api_version) == ("29.7.2", "1.55")
    assert (facts.root_dir, facts.gpu_ways) == ("/var/lib/containerd", ("cdi", "gpus"))
    assert docker.parse({}) is None, "a node that runs plain processes is not asked"


@pytest.mark.parametrize(
    ("info", "code"),
    [
        (Output(1, DOWN_INFO, DOWN), "DOWN"),
        (Output(1, DOWN_INFO, DOWN_29), "DOWN"),
        (Output(1, DOWN_INFO, DENIED), "DENIED"),
        (Output(1, DOWN_INFO, f"Got {DENIED}"), "DENIED"),
        (Output(1, "", "sudo: a password is required\n"), "DENIED"),
        (Output(1, "", "sudo: docker: command not found\n"), "ABSENT"),
        (Output(127, "", "sh: 1: docker: not found\n"), "ABSENT"),
        (Output(None, "", ""), "HUNG"),
        (Output(1, DOWN_INFO, DOWN.replace("unix:///var/run/docker.sock", "tcp://b:1")), "FOREIGN"),
        (Output(1, "", "client version 1.50 is too new. Maximum is 1.41\n"), "REFUSED"),
    ],
)
def test_causes_of_silence_differ(info: Output, code: str) -> None:
    """Each has another remedy."""
    assert parse(info, DOWN_VERSION) == Silent(code, info.err.strip())


def test_an_answer_of_the_client_or_of_podman_is_none_of_an_engine() -> None:
    """Older clients exit 0 without an engine, and podman's answers look like Docker's."""
    assert parse(DOWN_INFO, DOWN_VERSION) == Silent("DOWN", DOWN_VERSION.strip()[:300])
    info = (SAMPLES / "podman_4.3.1_served_info.json").read_text()
    version = (SAMPLES / "podman_4.3.1_served_version.json").read_text()
    assert parse(info, version) == Silent("FOREIGN", "podman 4.3.1 serves Docker's API")


@pytest.mark.parametrize(
    ("info", "version", "code"),
    [
        ("", VERSION, "UNREADABLE"),
        ("{", VERSION, "UNREADABLE"),
        ("[]", VERSION, "UNREADABLE"),
        ('{"DockerRootDir": 3}', VERSION, "UNREADABLE"),
        (INFO, '{"Server": {"ApiVersion": ""}}', "DOWN"),
    ],
)
def test_an_answer_that_is_no_json_of_docker_is_silent(info: str, version: str, code: str) -> None:
    silent = parse(info, version)
    assert isinstance(silent, Silent)
    assert silent.code == code


def run(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the real script with a stand-in for the client and for containerd's folder."""
    client = folder / "docker"
    client.write_text(f"#!/bin/sh\n{script}\n")
    client.chmod(0o755)
    info, _ = docker.sections(sudo=False)
    assert info.argv[-1] == "docker"
    asked = [word.replace("/etc/containerd", str(folder)) for word in info.argv[:-1]]
    argv = (*asked, str(client))
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("name", ["not/made", "this & that/not/made"])
def test_script_looks_where_the_engine_keeps_images(name: str, tmp_path: Path) -> None:
    """A folder that is not made yet lies where its nearest parent does; JSON escapes some names."""
    root = f"{tmp_path}/{name}"
    said = changed(DockerRootDir=root).replace("&", r"\u0026")
    done = run(f"[ \"$3\" = '{{{{json .}}}}' ] && echo '{said}' || echo '{root}'", tmp_path)
    facts = parse(Output(0, done.stdout, ""))
    assert isinstance(facts, DockerFacts)
    assert facts.root_dir == root
    free_mib = shutil.disk_usage(tmp_path).free >> 20
    assert facts.free_mib == pytest.approx(free_mib, abs=max(256, free_mib // 50))


@pytest.mark.parametrize(
    ("settings", "address", "root"),
    [
        (None, "/run/containerd/containerd.sock", "/var/lib/containerd"),
        ("version = 2\n[grpc]\nroot = '/x'\n", "/run/containerd/containerd.sock", None),
        ('root = "{0}"\n', "/run/containerd/containerd.sock", "{0}"),
        ("version = 3\nroot='{0}' # large\n", "/run/containerd/containerd.sock", "{0}"),
        ('root = "{0}"\n', "/var/run/docker/containerd/containerd.sock", "/var/lib/docker"),
    ],
)
def test_script_looks_where_containerd_keeps_images(
    settings: str | None, address: str, root: str | None, tmp_path: Path
) -> None:
    """A containerd that dockerd starts is below dockerd's folder."""
    if settings is not None:
        (tmp_path / "config.toml").write_text(settings.format(tmp_path))
    said = INFO_29.replace("/run/containerd/containerd.sock", address)
    done = run(f"echo '{said}'", tmp_path)
    facts = parse(Output(0, done.stdout, ""), VERSION_29)
    assert isinstance(facts, DockerFacts)
    assert facts.root_dir == (root or "/var/lib/containerd").format(tmp_path)
    assert facts.free_mib is not None


def test_an_engine_that_names_no_folder_has_no_known_space(tmp_path: Path) -> None:
    done = run("echo '{}'", tmp_path)
    assert done.returncode == 0
    assert "free_kib" not in done.stdout


def test_a_failure_of_the_client_is_the_whole_answer(tmp_path: Path) -> None:
    done = run(f"echo '{DOWN_INFO.strip()}'; echo down >&2; exit 3", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, DOWN_INFO, "down\n")


@pytest.mark.parametrize("warning", [PODMAN, ""])
def test_podman_behind_the_name_of_docker_is_foreign(warning: str, tmp_path: Path) -> None:
    """Its version shows it too, since `/etc/containers/nodocker` takes the warning away."""
    info = SAMPLES / "podman_4.3.1_info.json"
    client = f"printf %s '{warning}' >&2; [ $1 = --version ] && echo podman version 4.3.1 && exit"
    done = run(f"{client}; cat {info}", tmp_path)
    version = (SAMPLES / "podman_4.3.1_version.json").read_text()
    assert parse(Output(done.returncode, done.stdout, done.stderr), version) == Silent(
        "FOREIGN", "; ".join(filter(None, (warning.strip(), "podman version 4.3.1")))
    )


def test_the_script_asks_which_engine_the_client_reaches(tmp_path: Path) -> None:
    asked = f"[ $1 = context ] && echo 'ssh://root@build' || echo '{changed()}'"
    facts = parse(Output(0, run(asked, tmp_path).stdout, ""))
    assert isinstance(facts, Silent)
    assert facts.code == "FOREIGN"
