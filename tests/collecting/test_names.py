"""Cases and repeats are read from DLPerf's names of logs; where those lack a part, from headers."""

from pathlib import Path

import pytest

from orchestrator.collecting.folder import read_case
from orchestrator.model.case import Case
from orchestrator.model.text import Scalar
from orchestrator.workloads import ngc_pytorch_rn50

PYTORCH = ngc_pytorch_rn50.WORKLOAD
WHOLE: dict[str, Scalar] = {
    "nodes": 2,
    "gpus_per_node": 8,
    "micro_batch_size": 64,
    "precision": "amp",
    "loss_scale": "dynamic",
    "device": "cuda",
    "accumulation_steps": 4,
}


def read(path: str, **header: Scalar) -> tuple[Case, int]:
    found = read_case(Path(path), header, PYTORCH)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "placement", "batch", "precision", "repeat"),
    [
        ("/logs/amp/1n1g/r50_b256_amp_1.log", "1x1", 256, "amp", 1),
        ("/logs/4n8g/r50_b128_fp32_12.log", "4x8", 128, "fp32", 12),
        ("/logs/2n4d/r50_b96_fp16_3.log", "2x4", 96, "amp", 3),
    ],
)
def test_a_whole_name_gives_the_case(
    path: str, placement: str, batch: int, precision: str, repeat: int
) -> None:
    """Nodes and GPUs by the folder, the rest by the file; fp16 is upstream's word for amp."""
    case, number = read(path)
    assert (case.placement, case.micro_batch_size, case.precision) == (placement, batch, precision)
    assert number == repeat


def test_what_a_name_says_beyond_its_case_keeps_it_out_of_others_medians() -> None:
    """As another program's prefix, and a label after the precision."""
    assert read("/1n1g/bert_b256_fp32_1.log")[0].given["named"] == "bert"
    assert read("/1n1g/r50_b256_amp-static_1.log")[0].given["named"] == "static"
    assert "named" not in read("/1n1g/r50_b256_amp_1.log")[0].given


def test_a_header_adds_what_the_name_lacks() -> None:
    """Parameters of the program; a loss scale is one of amp alone."""
    case, _ = read("/1n1g/r50_b256_fp32_1.log", loss_scale="dynamic", device="cpu")
    assert (case.device, "loss_scale" in case.given) == ("cpu", False)
    assert read("/1n1g/r50_b256_amp_1.log", loss_scale="128")[0].given["loss_scale"] == "128"


@pytest.mark.parametrize(("file", "repeat"), [("run_7.txt", 7), ("run.txt", 1), ("run_0.txt", 1)])
def test_without_dlperfs_name_a_whole_header_gives_the_case(file: str, repeat: int) -> None:
    """With the repeat that the file's name ends in, if it ends in one."""
    case, number = read(f"/any/{file}", **WHOLE)
    assert (case.placement, case.micro_batch_size, case.accumulation_steps) == ("2x8", 64, 4)
    assert number == repeat


@pytest.mark.parametrize("gone", ["nodes", "gpus_per_node", "micro_batch_size", "precision"])
def test_a_header_that_lacks_a_part_gives_no_case(gone: str) -> None:
    """A case that is only guessed would share a median with others."""
    header = {key: value for key, value in WHOLE.items() if key != gone}
    assert read_case(Path("/any/run_1.txt"), header, PYTORCH) is None
