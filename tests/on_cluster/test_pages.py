"""The commands of README and docs/ that need a cluster run on the virtual one."""

import shutil
import subprocess

import pytest

from orchestrator.inputs import user_files
from tests.docs import running
from tests.docs.pages import ROOT
from tests.people import Desk

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]

PAGES = [ROOT / "docs/first-cluster.md", ROOT / "README.md", ROOT / "docs/data-sets.md"]
# As on the pages, with a program that the stubs of GPUs can stand for.
TODAY = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 1, iterations: 21, window: [5, 15], time_limit_s: 300, stall_limit_s: 120}
grid: {placement: [1x1, 2x8], precision: [amp], micro_batch_size: [256]}
"""


def test_init_finds_what_the_nodes_of_the_virtual_cluster_have(desk: Desk) -> None:
    """GPUs, Docker and the interface, from addresses alone; the file is fit to check.

    Adapters are read from the kernel's files, which virtual nodes do not have.
    """
    login = desk.cluster.place.folder
    nodes = [
        f"root@{node.address}" for node in user_files.cluster(str(desk.inventory()))[0].members
    ]
    words = ("--identity", f"{login}/id_ed25519", "--known-hosts", f"{login}/known_hosts")
    desk.must("init", *nodes, *words, "-o", "inventory/asked.yaml", "--force")
    desk.must("check", "inventory/asked.yaml")
    found, _ = user_files.cluster(str(desk.folder / "inventory/asked.yaml"))
    written, _ = user_files.cluster(str(desk.inventory()))
    for asked, known in zip(found.members, written.members, strict=True):
        assert (asked.address, asked.runtime, asked.interface) == (
            known.address,
            "docker",
            known.interface,
        )
        assert (asked.gpus, asked.hcas) == (known.gpus, ())


def test_what_is_typed_on_a_cluster_runs_on_four_nodes(desk: Desk) -> None:
    """Page after page in one folder: only the two files are those of the virtual cluster."""
    desk.playbook("today", TODAY)
    written = desk.inventory()
    (desk.folder / "inventory").mkdir()
    for name in ("mine.yaml", "mine.lock.json"):
        shutil.move(written.parent / name, desk.folder / "inventory" / name)
    path = running.program(desk.folder / "bin")

    def run(script: str) -> "subprocess.CompletedProcess[str]":
        env = {**desk.env, "PATH": path}
        return desk.cluster.run(*running.SHELL, script, cwd=desk.folder, env=env)

    ran = sum(running.read(page, desk.folder, run, running.runs_there) for page in PAGES)
    assert ran == len(running.ON_THE_CLUSTER)
    assert (desk.sweeps()[-1] / "report.md").exists()
    assert {outcome["state"] for outcome in desk.outcomes().values()} == {"valid"}
    assert not desk.left()
