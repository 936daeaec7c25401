"""`check` of an inventory with a playbook: what both files tell, before any node is asked."""

from pathlib import Path

import pytest

from tests import ROOT
from tests.cli.bad_files import INVENTORY, PLAYBOOK
from tests.cli.test_bad_files import dlperf

LISTED = INVENTORY.replace("registry:", "images: [reference-rn50]\nregistry:")
CUDA = PLAYBOOK.replace("inventory: local\n", "")
NGC = """\
workload: ngc_pytorch_rn50
image: ngc-pytorch-20.03
method: {repeats: 1, iterations: 100, window: [20, 60]}
grid: {placement: [1x1, 2x8], precision: [fp32], micro_batch_size: [128]}
"""
NGC_LISTED = INVENTORY.replace("registry:", "images: [ngc-pytorch-20.03]\nregistry:")
TF = (ROOT / "playbooks/tf-rn50-fp32.yaml").read_text().replace("2x8, 4x8", "2x8")
TF_LISTED = INVENTORY.replace("registry:", "images: [ngc-tensorflow-20.03]\nregistry:").replace(
    "/data/image", "/data/image, imagenet_tfrecord: /data/records, dali_idx: /data/idx"
)
SLURM = """\
name: queue
scheduler: slurm
slurm: {time: "01:00:00", nodes: 2}
defaults: {runtime: process, gpus: {count: 8}}
"""

CASES = {
    "nodes": (
        LISTED,
        CUDA.replace("2x2]", "2x2, 4x8]"),
        ["pb.yaml:10:30: grid.placement[3]: 4x8 asks for 4 nodes; inventory lab has 2"],
    ),
    "nodes-of-slurm": (
        SLURM,
        CUDA.replace("2x2]", "3x8]"),
        ["pb.yaml:10:25: grid.placement[2]: 3x8 asks for 3 nodes; inventory queue has 2"],
    ),
    "gpus": (
        LISTED.replace("{count: 8}", "{count: 8, use: [0]}"),
        CUDA,
        [
            "pb.yaml:10:20: grid.placement[1]: 1x2 asks for 2 GPUs; inventory lab"
            " lets node1 use at most 1",
            "pb.yaml:10:25: grid.placement[2]: 2x2 asks for 2 GPUs; inventory"
            " lab lets node[1-2] use at most 1",
        ],
    ),
    "data": (
        NGC_LISTED.replace("imagenet:", "imagnet:"),
        NGC,
        [
            "pb.yaml:1:11: workload: workload ngc_pytorch_rn50 reads the data set 'imagenet';"
            " needed data.imagenet for node[1-2] in inventory lab"
        ],
    ),
    "image": (
        INVENTORY,
        CUDA,
        [
            "pb.yaml:2:8: image: its image is not prepared there; needed `images:` of lab.yaml with"
            " reference-rn50"
        ],
    ),
    "image-that-is-none": (
        LISTED.replace("[reference-rn50]", "[nvcr.io/nvidia/none@1, reference-rm50]"),
        CUDA,
        ["lab.yaml:14:10: images[0]: no images put their program into nvcr.io/nvidia/none"],
    ),
    "image-of-a-playbook-that-is-none": (
        LISTED,
        CUDA.replace("image: reference-rn50", "image: nvcr.io/nvidia/none@1"),
        ["pb.yaml:2:8: image: no images put their program into nvcr.io/nvidia/none"],
    ),
    "program-in-the-container-alone": (
        TF_LISTED.replace("user: root", "user: root\n  runtime: process"),
        TF,
        ["images/ngc-tensorflow-20.03/main.py, and inventory lab runs plain processes; needed the"],
    ),
    "program-that-is-not-on-this-machine": (
        NGC_LISTED.replace("user: root", "transport: local\n  runtime: process"),
        NGC + "device: cuda\n",
        ["pb.yaml:2:8: image: there is no /workspace/rn50/multiproc.py, and inventory lab runs"],
    ),
    "interfaces": (
        TF_LISTED.replace("10.0.0.2}", "10.0.0.2, interface: eno1}"),
        TF,
        ["2x8: mpirun takes one interface for all nodes; the inventory has node1: ib0, node2: eno"],
    ),
    "variables": (
        LISTED + "env: {OMP_NUM_THREADS: 3}\n",
        CUDA.replace("device: cuda", "device: cpu"),
        ["inventory lab: env.OMP_NUM_THREADS: OMP_NUM_THREADS is set by workload reference_rn50"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_check_tells_what_both_files_tell(tmp_path: Path, name: str) -> None:
    """X9: exit 2, each mistake with file, line and column; a dry run refuses no more than that."""
    inventory, playbook, mistakes = CASES[name]
    (tmp_path / "lab.yaml").write_text(inventory)
    (tmp_path / "pb.yaml").write_text(playbook)
    said = dlperf(tmp_path, "check", "lab.yaml", "pb.yaml")
    assert said.returncode == 2, said.stdout + said.stderr
    lines = said.stderr.splitlines()
    assert len(lines) == len(mistakes), said.stderr
    for line, mistake in zip(lines, mistakes, strict=True):
        assert mistake in line
        assert line.startswith(("lab.yaml:", "pb.yaml:"))
    dry = dlperf(tmp_path, "sweep", "pb.yaml", "--inventory", "lab.yaml", "--dry-run")
    if dry.returncode:
        assert dry.returncode == 2
    else:
        assert name.startswith("image")  # a plan is shown also where no image was prepared yet


@pytest.mark.parametrize(("inventory", "playbook"), [(LISTED, CUDA), (NGC_LISTED, NGC)])
def test_what_only_nodes_know_is_not_called_fine(
    tmp_path: Path, inventory: str, playbook: str
) -> None:
    """X9: files that fit give exit 0, and one line about what was not asked."""
    (tmp_path / "lab.yaml").write_text(inventory)
    (tmp_path / "pb.yaml").write_text(playbook)
    said = dlperf(tmp_path, "check", "lab.yaml", "pb.yaml")
    assert (said.returncode, len(said.stdout.splitlines())) == (0, 2), said.stderr
    (line,) = said.stderr.splitlines()
    assert line.startswith("not asked: whether nodes answer, have the images and data sets")
    assert dlperf(tmp_path, "check", "pb.yaml").stderr == ""


def test_one_inventory_is_judged_with_all_playbooks(tmp_path: Path) -> None:
    """Of several inventories nobody says which one a playbook is for."""
    (tmp_path / "lab.yaml").write_text(INVENTORY)
    (tmp_path / "other.yaml").write_text(INVENTORY.replace("name: lab", "name: other"))
    (tmp_path / "one.yaml").write_text(CUDA)
    (tmp_path / "two.yaml").write_text(CUDA)
    said = dlperf(tmp_path, "check", "one.yaml", "lab.yaml", "two.yaml")
    assert [line.split(":")[0] for line in said.stderr.splitlines()] == ["one.yaml", "two.yaml"]
    assert dlperf(tmp_path, "check", "one.yaml", "lab.yaml", "other.yaml").returncode == 0
