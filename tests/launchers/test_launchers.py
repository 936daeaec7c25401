"""What a gang's network gets, and what mpirun and its sshd are started with."""

from dataclasses import replace

import pytest

from orchestrator import errors
from orchestrator.launchers import gang_env, mpirun, torchrun
from orchestrator.launchers.mpirun import Keys
from orchestrator.model.case import Case
from orchestrator.model.plan import Command, Placement, Seat
from orchestrator.model.text import Endpoint

TRAIN = Command(agent=(), program=("python3", "main.py", "--num_iter=120"))
USER = Keys("PRIVATE\n", "ssh-ed25519 USERKEY")
HOST = Keys("HOST PRIVATE\n", "ssh-ed25519 HOSTKEY")
GPU = Case(nodes=2, gpus_per_node=1, micro_batch_size=1, precision="fp32", device="cuda")


def placement(nodes: int, gpus: int, *interfaces: str | None) -> Placement:
    """Place a gang on so many of the seeds' nodes, each with such an interface."""
    names = interfaces or ("ib0",) * nodes
    seats = tuple(
        Seat(f"vs00{n + 1}", f"10.11.0.{n + 2}", tuple(range(gpus)), names[n], (), {})
        for n in range(nodes)
    )
    return Placement(seats, gpus_per_node=gpus, port=12345, code="/code", python="python3")


@pytest.mark.parametrize(
    ("nodes", "device", "seat", "expected"),
    [
        # Without that order, CUDA counts the fastest GPU first and index 1 may be another one.
        (1, "cuda", {"gpus": (3, 1)}, {"CUDA_VISIBLE_DEVICES": "3,1"}),
        (1, "cuda", {"gid_index": 3, "hcas": ("mlx5_0",), "interface": "ib0"}, {}),
        # The inventory has no network: NCCL chooses.
        (2, "cuda", {}, {"NCCL_DEBUG": "INFO"}),
        (
            *(2, "cuda", {"gid_index": 3, "traffic_class": 106}),
            {"NCCL_DEBUG": "INFO", "NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": "106"},
        ),
        (
            *(2, "cuda", {"interface": "ib0", "hcas": ("mlx5_0", "mlx5_1")}),
            {
                "NCCL_DEBUG": "INFO",
                "NCCL_SOCKET_IFNAME": "=ib0",
                "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
            },
        ),
        (2, "cpu", {"interface": "ib0", "hcas": ("mlx5_0",)}, {"GLOO_SOCKET_IFNAME": "ib0"}),
        (1, "cpu", {"interface": "ib0"}, {}),
    ],
)
def test_a_gang_gets_its_gpus_and_its_network(
    nodes: int, device: str, seat: dict[str, object], expected: dict[str, str]
) -> None:
    """NCCL takes whole names behind ``=``, so that eth1 is not eth10; gloo knows no such sign."""
    gang = placement(nodes, 1, *(None,) * nodes)
    mine = replace(gang.seats[0], **seat)  # type: ignore[arg-type] # fields of a seat
    usual = {"CUDA_VISIBLE_DEVICES": ""}
    if device == "cuda":
        usual = {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert gang_env(replace(GPU, device=device), gang, mine) == {**usual, **expected}


def test_each_node_of_torchrun_has_its_own_rank() -> None:
    tasks = torchrun(Command(("agent",), ("train.py",)), placement(3, 2))
    for rank, task in enumerate(tasks):
        assert task.argv[3:5] == ("--node_rank", str(rank))
        assert task.argv[7:9] == ("--master_addr", "10.11.0.2")


@pytest.mark.parametrize(
    ("agent", "gpus", "expected"),
    [
        ((), 1, "python3 main.py --num_iter=120"),  # there is nothing to launch
        (
            *(("--bind-to", "socket"), 8),
            "mpiexec --allow-run-as-root --bind-to socket -np 8 python3 main.py --num_iter=120",
        ),
    ],
)
def test_one_node_needs_no_sshd(agent: tuple[str, ...], gpus: int, expected: str) -> None:
    (start,) = mpirun.launch(Command(agent, TRAIN.program), placement(1, gpus))
    assert " ".join(start.argv) == expected
    assert (start.service, start.files) == (False, ())


def test_four_nodes_are_one_mpirun_and_three_services() -> None:
    """DLPerf's command line for 4 x 8 GPUs, with ssh by the attempt's own settings."""
    leader, *others = mpirun.launch(TRAIN, placement(4, 8))
    assert " ".join(leader.argv) == (
        "mpirun --allow-run-as-root --tag-output -x PYTHONUNBUFFERED= -np 32"
        " -H 10.11.0.2:8,10.11.0.3:8,10.11.0.4:8,10.11.0.5:8 --bind-to none --map-by slot"
        " -mca pml ob1 -mca btl ^openib -mca plm_rsh_agent ssh -F ssh_config"
        " -mca plm_rsh_no_tree_spawn 1 -mca btl_tcp_if_include ib0 -mca oob_tcp_if_include ib0"
        " python3 main.py --num_iter=120"
    )
    assert "ssh -F ssh_config" in leader.argv
    assert (leader.service, leader.capabilities) == (False, ())
    assert leader.files == ("id", "known_hosts", "ssh_config")
    assert mpirun.private(leader.files) == ("id",)
    assert [other.argv for other in others] == [("sh", f"r{n}.sshd.sh") for n in (1, 2, 3)]
    assert {other.service for other in others} == {True}
    assert others[0].capabilities == ("SETGID", "SETUID", "SYS_CHROOT")
    assert [mpirun.private(other.files) for other in others] == [
        (f"r{n}.host_key",) for n in (1, 2, 3)
    ]


def test_mpirun_takes_one_interface_or_none() -> None:
    """It would look for one name on all nodes, and find it on some."""
    leader, _ = mpirun.launch(TRAIN, placement(2, 8, None, None))
    assert "btl_tcp_if_include" not in leader.argv
    with pytest.raises(errors.UsageError, match="vs001: ib0, vs002: ib1") as raised:
        mpirun.launch(TRAIN, placement(2, 8, "ib0", "ib1"))
    assert raised.value.code == "INTERFACES"


def test_ssh_checks_the_attempts_own_keys_at_one_address_and_port() -> None:
    """Whoever has the attempt's key starts what the task's environment is for, and nothing else."""
    leader = mpirun.leader_files("/a", USER, {"10.11.0.3": HOST}, 12345)
    assert set(leader) == set(mpirun.LEADER_FILES)
    assert leader["known_hosts"] == "[10.11.0.3]:12345 ssh-ed25519 HOSTKEY\n"
    assert leader["id"] == "PRIVATE\n"
    checks = ("StrictHostKeyChecking yes", "BatchMode yes", "Port 12345", "IdentityFile /a/id")
    assert {*checks} <= {*leader["ssh_config"].splitlines()}
    service = mpirun.service_files("/a", 2, USER, HOST, Endpoint("10.11.0.3", port=12345))
    assert set(service) == {f"r2.{name}" for name in mpirun.SERVICE_FILES}
    assert service["r2.authorized_keys"] == "restrict ssh-ed25519 USERKEY\n"
    assert service["r2.host_key"] == "HOST PRIVATE\n"
    limits = ("ListenAddress 10.11.0.3", "Port 12345", "PasswordAuthentication no")
    settings = service["r2.sshd_config"].splitlines()
    assert {*limits, "ForceCommand sh /a/r2.enter.sh"} <= {*settings}


def test_lines_of_other_ranks_are_empty_so_that_line_numbers_remain() -> None:
    log = [
        b"mpirun says something\n",
        b"[1,0]<stdout>:of the leader\n",
        b"[1,8]<stdout>:of rank 8\n",
        b"[1,15]<stderr>:of rank 15\n",
        b"[1,x]<stdout>:no rank\n",
        b"[1,16]<stdout>:of rank 16\n",
    ]
    kept = mpirun.keep_ranks(log, range(8, 16))
    assert list(kept) == [b"\n", b"\n", log[2], log[3], b"\n", b"\n"]
