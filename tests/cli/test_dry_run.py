"""What a dry run shows: lines to paste, made of what the runtimes start; alike nodes once."""

import json
import shlex

import pytest

from orchestrator.model.site import DockerFacts
from orchestrator.runtimes.grants import way_of_gpus
from tests.conftest import Place

FLEET = """\
name: fleet
defaults:
  runtime: {runtime}
  user: {user}
  sudo: {sudo}
  gpus: {{count: 8}}
  hcas: [{{name: mlx5_0, rate_gbps: 100}}]
  data: {{imagenet: /data/imagenet}}
  interface: ib0
container: {{shm_size: 16g, ulimits: {{memlock: -1}}}}
nodes: [{{name: "n[0001-0250]", address: "10.0.0.[1-250]"}}, {{name: head, address: 10.0.1.1}}]
"""
PLAYBOOK = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 1, iterations: 151, window: [25, 125]}
grid: {placement: [250x8], precision: [amp], micro_batch_size: [256]}
"""
DOCKER = DockerFacts(
    *("20.10.7", "1.41", ("nvidia", "runc"), True, True, "/", None, ()),
)


def shown(place: Place, **fields: str) -> tuple[str, str, dict[str, str]]:
    """Return standard output and error of a dry run on the fleet, and its lines by node."""
    said = {"runtime": "docker", "user": "root", "sudo": "false", **fields}
    (place.folder / "inventory/fleet.yaml").write_text(FLEET.format(**said))
    (place.folder / "playbooks/wide.yaml").write_text(PLAYBOOK)
    words = ("sweep", "wide", "--inventory", "fleet", "--dry-run")
    done = place.must(*words)
    (lines,) = json.loads(place.must(*words, "--json").stdout)["lines"].values()
    return done.stdout, done.stderr, lines


def test_nodes_that_differ_in_rank_alone_are_one_text(place: Place) -> None:
    """A line of 250 nodes is shown once, with the words that differ; --json has every line."""
    out, err, lines = shown(place)
    assert len(out.splitlines()) == 8
    *_, node, line, same = out.splitlines()
    assert node == "  on n0001:"
    assert same == "  on n[0002-0250] the same, but --node_rank [1-249]"
    assert lines["n0001"] == line
    assert lines["n0250"] == line.replace("--node_rank 0 ", "--node_rank 249 ")
    assert "ngc-pytorch-20.03 stands for the image that will be made" in err


def test_a_line_shows_the_whole_container(place: Place) -> None:
    """Its memory, limits, devices, capabilities, GPUs, network and mounts; words are quoted."""
    _, _, lines = shown(place)
    words = shlex.split(lines["n0002"])
    folder = words[2]
    assert words[:6] == ["mkdir", "-p", folder, "&&", "docker", "run"]
    assert folder.startswith("/var/tmp/dlperf-root/dry-run/250n8g-r50_b256_amp")
    assert {
        *("--shm-size=17179869184", "--ulimit=memlock=-1:-1", "--cap-drop=ALL"),
        *("--cap-add=IPC_LOCK", "--device=/dev/infiniband:/dev/infiniband:rw", "--network=host"),
        *("--security-opt=no-new-privileges", "--user=0:0", f"--workdir={folder}"),
        "--mount=type=bind,source=/data/imagenet,target=/data/image,readonly",
        '--gpus=all,driver=nvidia,"capabilities=compute,utility"',
        "--env=CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7",
    } <= set(words)
    assert words[words.index("ngc-pytorch-20.03") + 1] == "python"


def test_a_user_whose_id_only_the_node_knows_is_asked_there(place: Place) -> None:
    """The node's shell finds it out; with sudo as the engine is reached."""
    _, _, lines = shown(place, user="bench", sudo="true")
    assert " && sudo -n docker run " in lines["n0001"]
    assert ' --user="$(id -u):$(id -g)" ' in lines["n0001"]
    assert f"--env=HOME={shlex.split(lines['n0001'])[2]}" in lines["n0001"]


def test_a_line_without_containers_runs_the_program(place: Place) -> None:
    """In its folder, with its environment."""
    out = place.must("sweep", "toy", "--repeats", "1", "--dry-run").stdout
    _, _, line = out.partition("  on left:\n")
    folder = line.split()[2]
    assert line.startswith(f"mkdir -p {folder} && cd {folder} && env TZ=UTC0 ")


@pytest.mark.parametrize(
    ("requested", "facts", "way"),
    [
        ("auto", DOCKER, "runtime"),
        ("auto", None, "gpus"),
        ("cdi", None, "cdi"),
        ("none", DOCKER, "none"),
    ],
)
def test_gpus_come_as_provision_saw(requested: str, facts: DockerFacts | None, way: str) -> None:
    """Before a node was asked, by Docker's own option."""
    assert way_of_gpus(requested, facts) == way
