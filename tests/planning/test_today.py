"""The shipped inventory and playbook for two nodes of eight H100, down to each command line."""

import importlib.util
import sys

import pytest

from orchestrator import errors
from orchestrator.inputs import user_files
from orchestrator.model.image import Program
from orchestrator.model.plan import Seat
from orchestrator.planning import bind, matrix, plan
from orchestrator.planning.plan import Recipe
from tests import ROOT

IN_IMAGE = Program("/workspace/reference-rn50", "python3", "sha256:" + "5e" * 32)


def h100() -> tuple[Recipe, list[Seat]]:
    """Return the recipe of the shipped playbook on the shipped inventory, and its seats."""
    playbook = user_files.playbook("rn50-h100")
    cluster, _ = user_files.cluster("h100x2")
    user_files.refuse_on(playbook, cluster, set(matrix.cases(playbook.experiment)))
    recipe = Recipe(playbook.name, playbook.experiment, playbook.workload, cluster, IN_IMAGE)
    return recipe, [node.seat("/var/tmp/sweeps") for node in cluster.members]


def test_a_base_with_a_tag_means_the_image_that_is_built_on_it() -> None:
    """In playbooks and inventories alike; for any other base, the images are listed."""
    image, folder = user_files.image("nvcr.io/nvidia/pytorch@25.09-py3")
    assert image.name == "reference-rn50@25.09-py3"
    assert image.base == "nvcr.io/nvidia/pytorch:25.09-py3"
    assert folder == ROOT / "images" / "reference-rn50"
    recipe, _ = h100()
    assert recipe.experiment.image == image.name
    assert recipe.cluster.images == ("nvcr.io/nvidia/pytorch@25.09-py3",)
    with pytest.raises(errors.UsageError) as refused:
        user_files.image("registry.example/team/pytorch@1.0")
    assert refused.value.code == "NO-BASE"
    assert "reference-rn50" in refused.value.fix


def test_both_nodes_use_all_adapters_and_meet_at_the_first() -> None:
    recipe, seats = h100()
    trials = plan.build(recipe).trials
    (two,) = (t for t in trials if t.name == "2n8g-r50_b256_bf16_1")
    tasks = bind.first(recipe, two, seats).tasks
    assert [task.node for task in tasks] == ["gpu01", "gpu02"]
    for node_rank, task in enumerate(tasks):
        assert task.env == {
            "TZ": "UTC0",
            "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "NCCL_SOCKET_IFNAME": "=eno1",
            "NCCL_DEBUG": "INFO",
            "NCCL_IB_HCA": "=" + ",".join(f"mlx5_{n}" for n in range(8)),
        }
        words = " ".join(task.argv)
        assert f"--nnodes 2 --node_rank {node_rank} --nproc_per_node 8" in words
        assert "--master_addr 10.0.0.11" in words
    assert len(trials) == 5 * 5 * 3


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_the_program_itself_accepts_every_command_line() -> None:
    """Its own parser reads precision, batch and iterations as the case has them."""
    path = ROOT / "images" / "reference-rn50" / "train.py"
    spec = importlib.util.spec_from_file_location("train_of_today", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = program
    spec.loader.exec_module(program)
    recipe, seats = h100()
    seen = set()
    for trial in plan.build(plan.repeated(recipe, 1)).trials:
        precision = trial.case.precision
        for task in bind.first(recipe, trial, seats).tasks:
            at = task.argv.index(f"{IN_IMAGE.code}/train.py")
            options = program.parse(task.argv[at + 1 :])
            assert (options.device, options.batch_size, options.prof) == ("cuda", 256, 501)
            assert (options.bf16, options.amp) == (precision == "bf16", precision == "amp")
            assert options.dynamic_loss_scale == options.amp
            assert not options.allow_tf32
            seen.add(precision)
    assert seen == {"bf16", "amp", "fp32"}
