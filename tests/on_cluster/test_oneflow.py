"""OneFlow's benchmarks on the virtual cluster, from playbook to report.

Stand-ins run behind the benchmarks' own command lines: real gangs of processes over four nodes that
train nothing and print each program's own log.
"""

import subprocess
from typing import Any

import pytest

from tests.people import Desk, swept

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]

IMAGES = ("oneflow-0.1.9", "oneflow-0.2.0", "oneflow-gpt-0.3.5")
FOUR = ["1x1", "1x8", "2x8", "4x8"]


@pytest.fixture(scope="module")
def prepared(
    provisioned: tuple[Desk, "subprocess.CompletedProcess[str]"],
    tmp_path_factory: pytest.TempPathFactory,
) -> Desk:
    """A desk whose cluster has the images of all of OneFlow's benchmarks."""
    first, done = provisioned
    assert done.returncode == 0, done.stderr
    return Desk.prepared(first, tmp_path_factory.mktemp("oneflow"), *IMAGES)


def rows(said: Any) -> dict[str, Any]:
    """Cases with a median, by placement."""
    return {case["case"]["placement"]: case for case in said["cases"] if case["median"]}


@pytest.mark.parametrize(
    ("playbook", "batch", "unit"),
    [
        ("oneflow-rn50-fp32", 128, "images/s"),
        pytest.param("oneflow-rn50-amp", 256, "images/s", marks=pytest.mark.long),
        ("oneflow-bert-fp32", 96, "sentences/s"),
        pytest.param("oneflow-bert-amp", 160, "sentences/s", marks=pytest.mark.long),
    ],
)
def test_oneflow_is_measured_over_four_nodes(
    prepared: Desk, playbook: str, batch: int, unit: str
) -> None:
    """Ranks by place in --node_ips, one control port, the window of the documents."""
    said = swept(prepared, playbook, "--case", f"*_b{batch}_*")
    found = rows(said)
    assert list(found) == FOUR
    assert said["unit"] == unit
    assert {row["case"]["micro_batch_size"] for row in found.values()} == {batch}
    assert {found[placement]["transport"] for placement in ("2x8", "4x8")} == {"IB mlx5_0"}
    assert found["1x1"]["speedup"] == 1.0


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("2D_PP_2x4x4_512_2304x24", ("2D_PP_2x4x4_512_2304x24",)),
        pytest.param("*", ("DP_8x1x1_16_1536x16", "2D_8x1x1_16_1536x16"), marks=pytest.mark.long),
    ],
    ids=["one", "all"],
)
def test_gpt_runs_the_layouts_of_the_report_by_their_names(
    prepared: Desk, pattern: str, names: tuple[str, ...]
) -> None:
    """18 cases, each with latency, memory and throughput; equal shapes keep logs of their own."""
    said = swept(prepared, "oneflow-gpt", "--case", pattern)
    cases = [case for case in said["cases"] if case["median"]]
    assert len(cases) == (18 if pattern == "*" else 1)
    for case in cases:
        assert case["median"] == pytest.approx(
            case["case"]["global_batch_size"] / case["latency_s"], rel=1e-9
        )
        assert case["memory_mib"] > 0
    folder = prepared.state / "sweeps" / said["sweep"]
    report = (folder / "report.md").read_text().replace("\\", "")
    assert all(name in report for name in names)
    assert len(list((folder / "logs").rglob("*.log"))) == len(cases)
