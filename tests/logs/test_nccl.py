"""What NCCL prints of itself: real logs of many releases, and what a gang of them proves."""

from collections.abc import Mapping

import pytest

import tests
from orchestrator.logs import DLLOGGER, nccl, reader, text
from orchestrator.measuring import transport_proof
from orchestrator.model.log import Fabric, Port
from orchestrator.model.plan import Task

READ = reader(DLLOGGER)

SAMPLES = tests.SAMPLES / "nccl"
# What a reader finds in each recording: the transport, and the lines that say so.
SEEN: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "ib_2.4.7_sockets_listed_too": ("IB mlx5_0", (1, 4)),
    "socket_2.4.8_no_libibverbs": ("Socket eno1", (4, 9)),
    "ib_2.5.6_roce_among_ib": ("IB mlx5_0,mlx5_1,mlx5_3,mlx5_4 + RoCE mlx5_2", (3,)),
    "socket_2.5.6_mpirun_no_device": ("Socket lo", (3, 4)),
    "socket_2.7.8_two_nodes_r0": ("Socket eno2", (6, 7)),
    "socket_2.7.8_two_nodes_r1": ("Socket eno2", (5, 6)),
    "ibext_2.12.9_sharp_plugin": (
        "IB mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7 (IBext)",
        (6, 7),
    ),
    "ib_2.19.3_one_hca": ("IB mlx5_0", (8, 10)),
    "roce_two_nodes_other_plugin_loaded": (
        "RoCE mlx5_0,mlx5_1,mlx5_11,mlx5_2,mlx5_5,mlx5_6,mlx5_7,mlx5_8",
        (7, 10),
    ),
    "socket_2.27.3_verbs_without_device": (
        "Socket br-83633be27e6c,br-9ba9ebd32537,br-e0df4395d684,br-ead5afbaeee3,ens85f0"
        ",veth37669ca",
        (4, 7, 10),
    ),
    "container_without_device_nodes": ("Socket bond0", (4, 5, 6)),
    "ibext_v8_merged_roce": ("RoCE mlx5_0,mlx5_1 (IBext_v8)", (4, 6)),
    "libibverbs_seed003_no_driver": ("-", ()),
    "shm_small_2.5": ("-", ()),
    "shm_small_2026": ("-", ()),
}
COMPLAINTS: Mapping[str, tuple[str, str]] = {
    "socket_2.4.8_no_libibverbs": ("IB-NO-DRIVER", "line 3: node01:2771:2771 [0] misc/ibvwrap"),
    "socket_2.7.8_two_nodes_r0": ("IB-NO-DRIVER", "libibverbs.so[.1] (the first of 2)"),
    "socket_2.7.8_two_nodes_r1": ("IB-NO-DRIVER", "libibverbs.so[.1] (the first of 2)"),
    "libibverbs_seed003_no_driver": ("IB-NO-DRIVER", "uverbs0 (the first of 8)"),
    "shm_small_2.5": ("SHM-SMALL", "line 3: gpu2-ru7:2143:2561 [1] include/shm.h:28 NCCL WARN"),
    "shm_small_2026": ("SHM-SMALL", "line 1: [2026-04-22 21:34:20] mt-l-x86iavx512-45-172"),
}
STEP = (
    b"DLL 2020-12-16 11:00:%02d.500000 - Epoch: 0 Iteration: %d  train.loss : 7.1"
    b"  train.total_ips : 100.00 img/s"
)
IB = Fabric(networks=("IB",), ports=(Port("mlx5_0", 1, "IB"),), lines=(8, 10))
SOCKET = Fabric(networks=("Socket",), interfaces=("eno2",), lines=(6, 7))


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.txt").read_bytes()


def read(log: bytes) -> Fabric:
    return nccl.read([log])


def task(node_rank: int, **env: str) -> Task:
    """A node's task with this environment."""
    return Task(f"vs00{node_rank + 1}", node_rank, ("python",), env, (), (0,))


def codes(seen: Mapping[str, Fabric], *nodes: str) -> list[str]:
    """Codes of what lacks where these nodes are asked for mlx5_0."""
    wanted = dict.fromkeys(nodes or seen, ("mlx5_0",))
    return [problem.code for problem in transport_proof.problems(wanted, seen)]


@pytest.mark.parametrize("name", SEEN)
def test_recorded_log_says_what_nccl_took(name: str) -> None:
    """Each recording gives the transport, the HCAs and the lines that one reads in it."""
    fabric = read(sample(name))
    assert (fabric.label, fabric.lines) == SEEN[name]


@pytest.mark.parametrize("name", SEEN)
def test_both_readers_hear_the_same(name: str) -> None:
    """The reader of training logs and the reader of any log agree, lines and all."""
    assert READ([sample(name)], (1, 2)).fabric == read(sample(name))


@pytest.mark.parametrize("name", SEEN)
def test_mistakes_of_libraries_are_kept(name: str) -> None:
    """The first of each sort, with its line, its words, and how many there are."""
    expected = [COMPLAINTS[name]] if name in COMPLAINTS else []
    problems = read(sample(name)).problems
    assert [problem.code for problem in problems] == [code for code, _ in expected]
    assert all(
        words in problem.message for problem, (_, words) in zip(problems, expected, strict=True)
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        # DLPerf, report v1_cn 6.2.2.
        (
            b"h:1:2 [0] NCCL WARN Connect to fe80::a480:7fff:fecf:1ed9%13<45166> failed :"
            b" Network is unreachable",
            "NET-IFACE",
        ),
        (b"Failed to initialize NVML: Unknown Error", "GPU-DETACHED"),
        (
            b"ERROR: Unexpected bus error encountered in worker. This might be caused by"
            b" insufficient shared memory (shm).",
            "SHM-SMALL",
        ),
        (
            b"RuntimeError: CUDA out of memory. Tried to allocate 88.00 MiB (GPU 0; 4.00 GiB total"
            b" capacity; 236.91 MiB already allocated; 2.78 GiB free; 252.00 MiB reserved in total"
            b" by PyTorch)",
            "CUDA-OOM",
        ),
    ],
)
def test_known_last_words_have_a_code(line: bytes, code: str) -> None:
    """The reason of a failure is found wherever it stands, and shown at a bearable length."""
    (problem,) = read(b"Traceback\n" + line + b"\n").problems
    assert problem.code == code
    assert problem.message.startswith(f"line 2: {line[:80].decode()}")
    assert len(problem.message) < 180


def test_peer_that_died_is_no_wrong_interface() -> None:
    """A refused connection says nothing of the interface."""
    line = b"h:1:2 [0] NCCL WARN Connect to 10.0.0.1<45166> failed : Connection refused\n"
    assert read(line) == Fabric()


def test_set_variable_is_no_evidence() -> None:
    """That an HCA was asked for does not prove that it was taken."""
    log = b"h:1:2 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0\nNET/IB : Using [0]mlx5_0:1/IB ; OOB\n"
    assert read(log).label == "-"


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_cut_line_is_no_evidence(cut: int) -> None:
    """A list of HCAs or a name that may go on proves nothing, with or without a line feed."""
    line = b"h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB"
    assert read(line[:-cut] if cut > 6 else line).networks == ()
    assert read(line[: -cut - 6] + b"\n").networks == ()
    assert read(b"h:1:2 [0] NCCL INFO Using network IB").networks == ()


def test_what_was_taken_counts_more_than_what_was_there() -> None:
    """HCAs that are listed, with all traffic over sockets, are sockets."""
    log = sample("ib_2.4.7_sockets_listed_too")
    used = b"master_node:20:289 [0] NCCL INFO Ring 00 : 1 -> 0 [receive] via NET/Socket/0\n"
    assert read(log + used).label == "Socket ib0"


def test_two_networks_in_one_task_are_both_named() -> None:
    """A process that fell back beside others that did not cannot hide."""
    fabric = read(sample("ib_2.19.3_one_hca") + b"NCCL INFO Using network IB\n")
    assert fabric.label == "IB mlx5_0"
    mixed = read(sample("ib_2.19.3_one_hca") + sample("socket_2.7.8_two_nodes_r1"))
    assert mixed.label == "IB mlx5_0 + Socket eno2"
    assert not mixed.over_verbs


@pytest.mark.parametrize(
    ("fabric", "label"),
    [
        (Fabric(), "-"),
        (Fabric(networks=("IB",)), "IB"),
        (Fabric(networks=("Socket",)), "Socket"),
        (Fabric(networks=("AWS Libfabric",)), "AWS Libfabric"),
        (Fabric(networks=("IB",), ports=(Port("mlx4_0", 2, "IB"),)), "IB mlx4_0:2"),
    ],
)
def test_label_names_what_is_known_and_no_more(fabric: Fabric, label: str) -> None:
    """No HCA, interface or link layer appears that no line named."""
    assert fabric.label == label


def test_foreign_plugin_is_named() -> None:
    """A transport that is neither InfiniBand nor sockets is shown by its own name."""
    log = b"h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0/GDRDMA\n"
    assert read(log).label == "AWS Libfabric"
    assert not read(log).over_verbs


def test_two_lines_in_one_count_where_they_are_whole() -> None:
    """Ranks that write at the same time glue lines together; nothing is lost by that."""
    one = b"h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 8[0] [receive] via NET/IB/0/GDRDMA"
    two = b"h:3:4 [1] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>\r\n"
    assert read(one + two).label == "IB mlx5_0"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_do_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the bytes arrive, they say the same."""
    monkeypatch.setattr(text, "PIECE", 100)  # else every sample is one piece
    for name in SEEN:
        log = sample(name)
        chunks = [log[at : at + size] for at in range(0, len(log), size)]
        assert nccl.read(chunks) == read(log)


def test_colours_and_bars_do_not_hide_a_line() -> None:
    """Terminal control and what a progress bar leaves in the line are passed over."""
    log = b"10%\r20%\r\x1b[32mh:1:2 [0] NCCL INFO Using network Socket\x1b[0m\r\n"
    assert read(b"\n" + log) == Fabric(networks=("Socket",), lines=(2,))
    assert READ([b"\n" + log], (1, 2)).fabric == read(b"\n" + log)


def test_line_of_a_megabyte_is_no_record() -> None:
    log = b"x" * (1 << 20) + b" NCCL INFO Using network IB\n"
    assert read(log) == Fabric()
    assert READ([log], (1, 2)).fabric == Fabric()


def test_library_lines_between_steps_are_no_records() -> None:
    """NCCL's lines among the steps give the transport, and cost the log nothing of its own."""
    steps = [STEP % (number, number) for number in range(1, 41)]
    plain = READ([b"\n".join(steps) + b"\n"], (2, 30))
    steps[20:20] = sample("ib_2.19.3_one_hca").splitlines()
    log = READ([b"\n".join(steps) + b"\n"], (2, 30))
    assert log.fabric.label == "IB mlx5_0"
    assert log.fabric.lines == (28, 30)
    assert (log.steps, log.digest, log.problems) == (plain.steps, plain.digest, plain.problems)
    assert plain.fabric == Fabric()


def test_words_glued_to_every_step_are_heard() -> None:
    """Steps that are read by the block are not deaf to what another writer put behind them."""
    glued = b" h:1:2 [0] NCCL INFO Channel 0 : 0 -> 1 via NET/Socket/0\n"
    steps = [STEP % (number, number) + (glued if number > 20 else b"\n") for number in range(1, 60)]
    log = READ([b"".join(steps)], (2, 30))
    assert log.fabric == Fabric(networks=("Socket",), lines=(21,))
    assert log.steps == 59


def test_gang_asks_for_what_its_plan_sets() -> None:
    """The HCAs of NCCL_IB_HCA, by node; a single node and a node without HCAs ask for none."""
    told = {"NCCL_IB_HCA": "=mlx5_0,mlx5_1"}
    assert transport_proof.requested([task(0, **told), task(1, **told)]) == {
        "vs001": ("mlx5_0", "mlx5_1"),
        "vs002": ("mlx5_0", "mlx5_1"),
    }
    assert transport_proof.requested([task(0, **told)]) == {}
    assert transport_proof.requested([task(0), task(1)]) == {}


def test_infiniband_on_every_node_is_proof() -> None:
    """Nothing lacks if each node's own log shows the HCA that was asked for, and only that."""
    assert codes({"vs001": IB, "vs002": read(sample("ib_2.19.3_one_hca"))}) == []
    assert codes({"vs001": read(sample("ib_2.4.7_sockets_listed_too"))}) == []


def test_nobody_asked_nothing_lacks() -> None:
    """Without HCAs in the inventory, sockets are recorded and never a fault."""
    assert transport_proof.problems({}, {"vs001": SOCKET, "vs002": SOCKET}) == ()


def test_sockets_where_infiniband_was_asked_are_named() -> None:
    """One node of two that fell back makes the trial invalid, with node, wish, finding, lines."""
    (problem,) = transport_proof.problems(
        {"vs001": ["mlx5_0"], "vs002": ["mlx5_0"]}, {"vs001": IB, "vs002": SOCKET}
    )
    assert problem.code == "TRANSPORT"
    assert problem.message == (
        "node vs002: the case asks for InfiniBand on mlx5_0; NCCL took Socket eno2 (lines 6, 7)"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("socket_2.5.6_mpirun_no_device", ["TRANSPORT"]),
        ("socket_2.27.3_verbs_without_device", ["TRANSPORT"]),
        ("container_without_device_nodes", ["TRANSPORT"]),
        ("socket_2.7.8_two_nodes_r0", ["IB-NO-DRIVER", "TRANSPORT"]),
        ("libibverbs_seed003_no_driver", ["IB-NO-DRIVER", "TRANSPORT-UNPROVEN"]),
        ("ib_2.5.6_roce_among_ib", ["IB-HCA"]),
        ("ibext_2.12.9_sharp_plugin", ["IB-HCA"]),
        ("shm_small_2.5", ["TRANSPORT-UNPROVEN"]),
    ],
)
def test_recorded_log_without_proof_says_what_lacks(name: str, expected: list[str]) -> None:
    """Where mlx5_0 was asked for, each recording that does not show it gives its own reason."""
    assert codes({"vs001": read(sample(name))}) == expected


def test_process_without_a_device_spoils_the_proof() -> None:
    """A rank that found no HCA is not covered by its neighbours that did."""
    log = sample("ib_2.19.3_one_hca") + b"testgpu2:1:2 [2] NCCL INFO NET/IB : No device found.\n"
    (problem,) = transport_proof.problems({"vs001": ["mlx5_0"]}, {"vs001": read(log)})
    assert problem.code == "TRANSPORT"
    assert problem.message.endswith("NCCL found no device (line 12) and took IB mlx5_0")
    alone = read(b"h:1:2 [2] NCCL INFO NET/IB : No device found.\n")
    (problem,) = transport_proof.problems({"vs001": ["mlx5_0"]}, {"vs001": alone})
    assert problem.message.endswith("; NCCL found no device (line 1)")


def test_missing_proof_is_no_proof() -> None:
    """A node whose log is not there, and one whose log names no HCA, prove nothing."""
    unnamed = Fabric(networks=("IB",), lines=(3,))
    assert codes({"vs002": unnamed}, "vs001", "vs002") == ["TRANSPORT-UNPROVEN"] * 2


def test_gangs_transport_is_one_word_if_its_nodes_agree() -> None:
    """What a report shows: the common label, or each node's."""
    assert transport_proof.transport({"vs001": IB, "vs002": IB}) == "IB mlx5_0"
    assert (
        transport_proof.transport({"vs001": IB, "vs002": SOCKET})
        == "vs001: IB mlx5_0; vs002: Socket eno2"
    )
    assert transport_proof.transport({"vs001": Fabric()}) == "-"
    assert transport_proof.transport({}) == "-"


def test_troubles_name_their_node() -> None:
    """What a gang's libraries complain of is told with the node that it came from."""
    (problem,) = transport_proof.library_problems(
        {"vs001": IB, "vs002": read(sample("shm_small_2.5"))}
    )
    assert problem.code == "SHM-SMALL"
    assert problem.message.startswith("node vs002: line 3: gpu2-ru7:2143:2561 [1] include/shm.h:28")
