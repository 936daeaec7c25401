"""mpirun: what the leader and the others start, and what they are given for it."""

import pytest

from orchestrator import errors
from orchestrator.launchers import mpirun
from orchestrator.launchers.mpirun import Keys
from orchestrator.model.plan import Command, Placement, Seat
from orchestrator.model.text import Endpoint

TRAIN = Command(agent=(), program=("python3", "main.py", "--num_iter=120"))
USER = Keys("PRIVATE\n", "ssh-ed25519 USERKEY")
HOST = Keys("HOST PRIVATE\n", "ssh-ed25519 HOSTKEY")


def placement(nodes: int, gpus: int, *interfaces: str | None) -> Placement:
    """So many of the seeds' nodes, each with such an interface."""
    names = interfaces or ("ib0",) * nodes
    seats = tuple(
        Seat(f"vs00{n + 1}", f"10.11.0.{n + 2}", tuple(range(gpus)), names[n], (), {})
        for n in range(nodes)
    )
    return Placement(seats, gpus_per_node=gpus, port=12345, code="/code", python="python3")


def test_one_gpu_runs_bare() -> None:
    """As upstream's scripts do: there is nothing to launch."""
    (start,) = mpirun.launch(TRAIN, placement(1, 1))
    assert (start.argv, start.service, start.files) == (TRAIN.program, False, ())


def test_one_node_needs_no_sshd() -> None:
    """mpiexec with a rank a GPU, and what the workload gives it of options."""
    command = Command(agent=("--bind-to", "socket"), program=("python3", "main.py"))
    (start,) = mpirun.launch(command, placement(1, 8))
    said = "mpiexec --allow-run-as-root --bind-to socket -np 8 python3 main.py"
    assert " ".join(start.argv) == said
    assert start.files == ()


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
    assert len(others) == 3
    assert {other.service for other in others} == {True}
    assert others[0].argv == ("sh", "r1.sshd.sh")
    assert others[0].capabilities == ("SETGID", "SETUID", "SYS_CHROOT")


def test_without_an_interface_mpirun_is_told_of_none() -> None:
    """What the inventory does not say is not made up."""
    leader, _ = mpirun.launch(TRAIN, placement(2, 8, None, None))
    assert "btl_tcp_if_include" not in leader.argv


def test_interfaces_of_different_names_are_refused() -> None:
    """mpirun would look for one name on all nodes, and find it on some."""
    with pytest.raises(errors.UsageError, match="vs001: ib0, vs002: ib1") as raised:
        mpirun.launch(TRAIN, placement(2, 8, "ib0", "ib1"))
    assert raised.value.code == "INTERFACES"


def test_the_leader_knows_the_other_nodes_host_keys_and_no_others() -> None:
    """Strictly checked, of this port, and by no file of the machine."""
    files = mpirun.leader_files("/a", USER, {"10.11.0.3": HOST}, 12345)
    assert set(files) == set(mpirun.LEADER_FILES)
    assert files["known_hosts"] == "[10.11.0.3]:12345 ssh-ed25519 HOSTKEY\n"
    assert files["id"] == "PRIVATE\n"
    settings = files["ssh_config"].splitlines()
    for needed in (
        "StrictHostKeyChecking yes",
        "BatchMode yes",
        "Port 12345",
        "IdentityFile /a/id",
    ):
        assert needed in settings


def test_the_service_listens_at_one_address_and_lets_one_key_in() -> None:
    """Whoever has the attempt's key starts what the task's environment is for, and nothing else."""
    files = mpirun.service_files("/a", 2, USER, HOST, Endpoint("10.11.0.3", port=12345))
    assert set(files) == {f"r2.{name}" for name in mpirun.SERVICE_FILES}
    assert files["r2.authorized_keys"] == "restrict ssh-ed25519 USERKEY\n"
    assert files["r2.host_key"] == "HOST PRIVATE\n"
    settings = files["r2.sshd_config"].splitlines()
    for needed in (
        "ListenAddress 10.11.0.3",
        "Port 12345",
        "PasswordAuthentication no",
        "ForceCommand sh /a/r2.enter.sh",
    ):
        assert needed in settings


def test_a_node_s_words_are_told_by_the_tags_of_its_ranks() -> None:
    """Lines of other ranks, and of mpirun itself, are empty; line numbers stay."""
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


def test_keys_are_told_from_other_files() -> None:
    """Those of the leader and of a service, whatever its rank; they are removed at the end."""
    leader, service = mpirun.launch(TRAIN, placement(2, 8, "ib0", "ib0"))
    assert mpirun.private(leader.files) == ("id",)
    assert mpirun.private(service.files) == ("r1.host_key",)
