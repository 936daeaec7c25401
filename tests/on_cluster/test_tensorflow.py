"""TensorFlow's benchmark on the virtual cluster, from playbook to report.

Stand-ins run behind the benchmark's own command lines: real gangs of processes over four nodes, by
Debian's OpenMPI, that train nothing and print the program's own log.
"""

import subprocess
from collections.abc import Iterator

import pytest

from tests.people import Desk, outcomes, swept

pytestmark = [pytest.mark.cluster, pytest.mark.daemons]


@pytest.fixture(scope="module")
def prepared(
    provisioned: tuple[Desk, "subprocess.CompletedProcess[str]"],
    tmp_path_factory: pytest.TempPathFactory,
) -> Desk:
    """A desk whose cluster has its image."""
    first, done = provisioned
    assert done.returncode == 0, done.stderr
    return Desk.prepared(first, tmp_path_factory.mktemp("tensorflow"), "ngc-tensorflow-20.03")


@pytest.mark.long
@pytest.mark.parametrize(
    ("playbook", "pattern"),
    [
        ("tf-rn50-fp32", "*_b128_*"),
        pytest.param("tf-rn50-amp", "*_b208_amp-xla_*", marks=pytest.mark.long),
        pytest.param("tf-rn50-amp-perf", "*_b128_amp-xla-benchmark_*", marks=pytest.mark.long),
    ],
)
def test_tensorflow_runs_by_mpi_over_four_nodes(
    prepared: Desk, playbook: str, pattern: str
) -> None:
    """One mpirun on the leader, sshd on the others, and 32 GPUs as a document left to do."""
    prepared.cluster.switch(iteration_s=0.05)  # long beside what neighbours take: rates agree
    try:
        said = swept(prepared, playbook, "--case", pattern)
    finally:
        prepared.cluster.switch()
    placements = {case["case"]["placement"] for case in said["cases"] if case["median"]}
    assert {"1x1", "1x8", "4x8"} <= placements
    four = [case for case in said["cases"] if case["case"]["placement"] == "4x8" and case["median"]]
    assert {case["transport"] for case in four} == {"IB mlx5_0"}
    ends = outcomes(prepared, said)[four[0]["trials"][0]["trial"]]["tasks"]
    assert [(end["node"], end["why"]) for end in ends] == [
        ("vs001", "exited"),
        *((f"vs00{rank}", "stopped") for rank in (2, 3, 4)),
    ]


MPI = """\
workload: ngc_tensorflow_rn50
image: ngc-tensorflow-20.03
method: {repeats: 1, iterations: 120, window: [21, 120], rule: rates, time_limit_s: 120}
grid: {placement: [2x2], precision: [fp32], micro_batch_size: [128]}
params: {mode: train}
"""
SSHD = "pgrep -fc '[s]shd -D -e -f /var/tmp/dlperf' || true"


@pytest.fixture
def mpi(prepared: Desk) -> Iterator[str]:
    """A playbook of one trial by mpirun on two nodes; what it leaves behind a failure is ended."""
    yield prepared.playbook("mpi", MPI)
    prepared.end()
    prepared.cluster.switch()


def serving(desk: Desk) -> list[int]:
    """How many sshd of attempts run on each of the nodes."""
    return [int(node.sh(SSHD).stdout.split()[0]) for node in desk.cluster.nodes[:2]]


def test_a_rank_that_dies_ends_mpirun_and_its_services(prepared: Desk, mpi: str) -> None:
    """Exit 3 with the reason, and neither ranks nor sshd nor keys on any node; later it counts.

    mpirun ends with the signal of its rank: who sent it is not known, and it is tried again.
    """
    prepared.cluster.switch(die={"rank": 3, "iteration": 30})
    (trial,) = prepared.json("sweep", mpi, *prepared.on(), code=3)["cases"][0]["trials"]
    assert (trial["state"], trial["problems"][0]["code"]) == ("infra-lost", "KILLED")
    assert serving(prepared) == [0, 0]
    assert not prepared.left()
    prepared.cluster.switch()
    (case,) = swept(prepared, mpi)["cases"]
    assert (case["trials_valid"], case["transport"]) == (1, "IB mlx5_0")
    assert serving(prepared) == [0, 0]
