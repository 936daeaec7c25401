"""Dry runs show the planned cases, the inventory and commands that a shell accepts."""

import shlex

import pytest

from orchestrator.model.site import DockerFacts
from orchestrator.runtimes.grants import way_of_gpus
from tests.cli.here import Here

FLEET = """\
name: fleet
defaults:
  runtime: docker
  user: {user}
  sudo: {sudo}
  gpus: {{count: 8}}
  hcas: [{{name: mlx5_0, rate_gbps: 100}}]
  data: {{imagenet: /data/imagenet}}
  interface: ib0
container: {{shm_size: 16g, ulimits: {{memlock: -1}}}}
nodes: [{{name: "n[0001-0250]", address: "10.0.0.[1-250]"}}, {{name: head, address: 10.0.1.1}}]
"""
WIDE = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 1, iterations: 151, window: [25, 125]}
grid: {placement: [250x8], precision: [amp], micro_batch_size: [256]}
"""
MIXED = """\
name: mixed
nodes:
  - {name: small, address: 10.0.0.1, gpus: {count: 2}}
  - {name: large, address: 10.0.0.2, gpus: {count: 8}}
"""
DOCKER = DockerFacts("20.10.7", "1.41", ("nvidia", "runc"), True, True, "/", None, ())
TOY = ("sweep", "toy", "--repeats", "1", "--dry-run")


@pytest.mark.parametrize("words", ["--case 1x1 --case 2x2", "--case 1x1,2x2", "--case '2x2, 1x*'"])
def test_several_cases_keep_the_playbooks_order(here: Here, words: str) -> None:
    trials = here(*TOY, "--json", *shlex.split(words), code=0).document["plan"]["trials"]
    assert [(it["case"]["nodes"], it["case"]["gpus_per_node"]) for it in trials] == [(1, 1), (2, 2)]


def test_a_case_of_gpt_has_the_name_of_dlperfs_report(here: Here) -> None:
    names = ["DP_1x1x1_2_1536x16", "2D_PP_2x4x4_512_2304x24"]
    words = ("--inventory", "v100x4", "--case", ",".join(reversed(names)))
    ended = here("sweep", "oneflow-gpt", "--dry-run", "--json", *words, code=0)
    assert [trial["name_of_case"] for trial in ended.document["plan"]["trials"]] == names


def test_a_file_with_the_name_of_a_playbook_does_not_hide_it(here: Here) -> None:
    here.write("toy", "sweep toy-1 goes on\n")
    here(*TOY, code=0)
    here("sweep", "./toy", "--dry-run", code=2)


def test_the_inventory_is_that_of_the_option_the_playbook_or_the_last_fit(here: Here) -> None:
    """A cluster that could not be reached is no default, before or after a fit one."""
    here.write("inventory/nohost.yaml", "name: nohost\nnodes: [{name: far, address: 127.0.0.9}]\n")
    here("provision", "two", code=0)
    assert "inventory two: the playbook names it" in here(*TOY).err
    named = here(*TOY, "--inventory", "local", code=0)
    assert "on node1:" in named.out
    assert "inventory" not in named.err
    here.edit("playbooks/toy.yaml", "inventory: two\n", "")
    here("provision", "nohost", code=6)
    fit, unfit = here(*TOY, code=0).err.splitlines()[:2]
    assert fit.endswith("inventory/two.yaml: the last one found fit in .dlperf")
    assert unfit.startswith("not fit, though provisioned later: ")
    assert unfit.endswith("inventory/nohost.yaml")
    (here.state / "sites/two.json").unlink()
    refused = here(*TOY, code=2)
    assert "ERROR NO-INVENTORY" in refused.err
    assert "inventory/nohost.yaml. Fix: " in refused.err


def test_nodes_with_too_few_gpus_are_passed_over(here: Here) -> None:
    """If no other node is left, the case is refused."""
    here.write("inventory/mixed.yaml", MIXED)
    text = WIDE.replace("250x8", "1x8").replace("ngc_pytorch_rn50", "reference_rn50")
    here.write("playbooks/eight.yaml", text.replace("ngc-pytorch-20.03", "reference-rn50"))
    on = ("sweep", "eight", "--dry-run", "--inventory", "mixed")
    assert "on large:" in here(*on, code=0).out
    refused = here(*on, "--nodes", "small", code=2)
    assert "1x8 asks for 8 GPUs; inventory mixed lets small use at most 2" in refused.err


def test_nodes_that_differ_in_rank_alone_are_one_text(here: Here) -> None:
    """A line of 250 nodes is shown once, with the words that differ; --json has every line."""
    here.write("inventory/fleet.yaml", FLEET.format(user="root", sudo="false"))
    here.write("playbooks/wide.yaml", WIDE)
    words = ("sweep", "wide", "--inventory", "fleet", "--dry-run")
    ended = here(*words, code=0)
    (lines,) = here(*words, "--json", code=0).document["lines"].values()
    assert len(ended.out.splitlines()) == 8
    *_, node, line, same = ended.out.splitlines()
    assert node == "  on n0001:"
    assert same == "  on n[0002-0250] the same, but --node_rank [1-249]"
    assert lines["n0001"] == line
    assert lines["n0250"] == line.replace("--node_rank 0 ", "--node_rank 249 ")
    assert "ngc-pytorch-20.03 stands for the image that will be made" in ended.err


def test_a_line_shows_the_whole_container(here: Here) -> None:
    """Its memory, limits, devices, capabilities, GPUs, network and mounts; words are quoted."""
    here.write("inventory/fleet.yaml", FLEET.format(user="bench", sudo="true"))
    here.write("playbooks/wide.yaml", WIDE)
    words = ("sweep", "wide", "--inventory", "fleet", "--dry-run", "--json")
    (lines,) = here(*words, code=0).document["lines"].values()
    assert ' --user="$(id -u):$(id -g)" ' in lines["n0002"]  # only the node knows the number
    line = shlex.split(lines["n0002"])
    folder = line[2]
    assert line[:8] == ["mkdir", "-p", folder, "&&", "sudo", "-n", "docker", "run"]
    assert folder.startswith("/var/tmp/dlperf-bench/dry-run/250n8g-r50_b256_amp")
    assert {
        *("--shm-size=17179869184", "--ulimit=memlock=-1:-1", "--cap-drop=ALL"),
        *("--cap-add=IPC_LOCK", "--device=/dev/infiniband:/dev/infiniband:rw", "--network=host"),
        *("--security-opt=no-new-privileges", f"--env=HOME={folder}", f"--workdir={folder}"),
        "--mount=type=bind,source=/data/imagenet,target=/data/image,readonly",
        '--gpus=all,driver=nvidia,"capabilities=compute,utility"',
        "--env=CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7",
    } <= set(line)
    assert line[line.index("ngc-pytorch-20.03") + 1] == "python"


def test_a_line_without_containers_runs_the_program(here: Here) -> None:
    _, _, line = here(*TOY, code=0).out.partition("  on left:\n")
    folder = line.split()[2]
    assert line.startswith(f"mkdir -p {folder} && cd {folder} && env TZ=UTC0 ")


@pytest.mark.parametrize(
    ("requested", "facts", "way"),
    [
        ("auto", DOCKER, "runtime"),
        ("auto", None, "gpus"),  # before a node was asked, by Docker's own option
        ("cdi", None, "cdi"),
        ("none", DOCKER, "none"),
    ],
)
def test_gpus_come_as_provision_saw(requested: str, facts: DockerFacts | None, way: str) -> None:
    assert way_of_gpus(requested, facts) == way
