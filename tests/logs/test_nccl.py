"""What NCCL prints of itself: real logs of many releases, and what a gang of them proves."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests
from orchestrator.logs import DLLOGGER, nccl, reader, text
from orchestrator.measuring import transport_proof
from orchestrator.model.log import Fabric, Port
from orchestrator.model.plan import Task

READ = reader(DLLOGGER)
SAMPLES = tests.SAMPLES / "nccl"
# What a person reads in each recording: the transport, and the lines that contain it.
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
IB = Fabric(networks=("IB",), ports=(Port("mlx5_0", 1, "IB"),), lines=(8, 10))
SOCKET = Fabric(networks=("Socket",), interfaces=("eno2",), lines=(6, 7))


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.txt").read_bytes()


def read(log: bytes) -> Fabric:
    """Read a log of any program; the reader of training logs must find the same."""
    found = nccl.read([log])
    assert not log.endswith(b"\n") or READ([log], (1, 2)).fabric == found
    return found


def find_codes(seen: Mapping[str, Fabric], *nodes: str) -> list[str]:
    """Return the codes of what is missing where these nodes request mlx5_0."""
    wanted = dict.fromkeys(nodes or seen, ("mlx5_0",))
    return [problem.code for problem in transport_proof.problems(wanted, seen)]


@pytest.mark.parametrize("name", SEEN)
def test_a_recorded_log_gives_its_transport_and_its_complaints(name: str) -> None:
    fabric = read(sample(name))
    assert (fabric.label, fabric.lines) == SEEN[name]
    expected = [COMPLAINTS[name]] if name in COMPLAINTS else []
    assert [problem.code for problem in fabric.problems] == [code for code, _ in expected]
    for problem, (_, words) in zip(fabric.problems, expected, strict=True):
        assert words in problem.message


@given(name=st.sampled_from([*SEEN]), size=st.integers(1, 400), piece=st.integers(1, 400))
def test_pieces_and_chunks_of_any_size_make_no_difference(name: str, size: int, piece: int) -> None:
    log = sample(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE", piece)  # else every sample is one piece
        chunks = [log[at : at + size] for at in range(0, len(log), size)]
        assert nccl.read(chunks) == nccl.read([log])


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
def test_a_known_error_has_a_code_and_is_shown_at_a_readable_length(line: bytes, code: str) -> None:
    (problem,) = read(b"Traceback\n" + line + b"\n").problems
    assert problem.code == code
    assert problem.message.startswith(f"line 2: {line[:80].decode()}")
    assert len(problem.message) < 180


def test_an_error_of_160_characters_is_shown_whole() -> None:
    longest = "CUDA out of memory".rjust(160, "x")
    (problem,) = read(f"{longest}\n".encode()).problems
    assert problem.message == f"line 1: {longest}"


INFO = b"h:1:2 [0] NCCL INFO "
ONE_HCA = sample("ib_2.19.3_one_hca")


@pytest.mark.parametrize(
    ("log", "label"),
    [
        # A refused connection proves nothing about the interface; a variable is no traffic.
        (b"h:1:2 [0] NCCL WARN Connect to 10.0.0.1<45166> failed : Connection refused\n", "-"),
        (INFO + b"NCCL_IB_HCA set to mlx5_0\nNET/IB : Using [0]mlx5_0:1/IB ; OOB\n", "-"),
        (b"x" * (1 << 20) + b" NCCL INFO Using network IB\n", "-"),
        # Traffic counts more than what was listed.
        (
            sample("ib_2.4.7_sockets_listed_too")
            + INFO
            + b"Ring 00 : 1 -> 0 [receive] via NET/Socket/0\n",
            "Socket ib0",
        ),
        # A process that fell back beside others that did not cannot hide.
        (ONE_HCA + b"NCCL INFO Using network IB\n", "IB mlx5_0"),
        (ONE_HCA + sample("socket_2.7.8_two_nodes_r1"), "IB mlx5_0 + Socket eno2"),
        (INFO + b"Channel 00/0 : 0[0] -> 1[0] via NET/AWS Libfabric/0/GDRDMA\n", "AWS Libfabric"),
        # Ranks that write at the same time glue lines together; a terminal colors them.
        (
            INFO + b"Channel 00/0 : 1[1] -> 8[0] [receive] via NET/IB/0/GDRDMA"
            b"h:3:4 [1] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>\r\n",
            "IB mlx5_0",
        ),
        (b"10%\r20%\r\x1b[32mh:1:2 [0] NCCL INFO Using network Socket\x1b[0m\r\n", "Socket"),
        (INFO + b"Using network IB\n", "IB"),
        (INFO + b"Using network IB", "-"),  # a name that may go on
        (INFO + b"NET/IB : Using [0]mlx4_0:2/IB ; OOB\n", "IB mlx4_0:2"),
    ],
)
def test_only_traffic_that_a_whole_line_shows_is_evidence(log: bytes, label: str) -> None:
    fabric = read(log)
    assert fabric.label == label
    assert fabric.over_verbs == (label.startswith("IB") and "Socket" not in label)


@given(cut=st.integers(1, 66))
def test_a_cut_list_of_hcas_is_no_evidence(cut: int) -> None:
    line = INFO + b"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB"
    assert read(line[:-cut]).networks == ()
    assert read(line[: -cut - 5] + b"\n").networks == ()


def test_libraries_between_steps_are_read_and_are_no_records() -> None:
    step = (
        b"DLL 2020-12-16 11:00:%02d.500000 - Epoch: 0 Iteration: %d  train.loss : 7.1"
        b"  train.total_ips : 100.00 img/s"
    )
    steps = [step % (number, number) for number in range(1, 41)]
    plain = READ([b"\n".join(steps) + b"\n"], (2, 30))
    log = READ([b"\n".join([*steps[:20], *ONE_HCA.splitlines(), *steps[20:]]) + b"\n"], (2, 30))
    assert (log.fabric.label, log.fabric.lines) == ("IB mlx5_0", (28, 30))
    assert (log.steps, log.digest, log.problems) == (plain.steps, plain.digest, plain.problems)
    assert plain.fabric == Fabric()


def test_a_gang_requests_what_its_plan_sets() -> None:
    """The HCAs of NCCL_IB_HCA, by node; one node, or nodes without HCAs, request none."""

    def task(node_rank: int, **env: str) -> Task:
        return Task(f"vs00{node_rank + 1}", node_rank, ("python",), env, (), (0,))

    env = {"NCCL_IB_HCA": "=mlx5_0,mlx5_1"}
    assert transport_proof.requested([task(0, **env), task(1, **env)]) == {
        "vs001": ("mlx5_0", "mlx5_1"),
        "vs002": ("mlx5_0", "mlx5_1"),
    }
    assert transport_proof.requested([task(0, **env)]) == {}
    assert transport_proof.requested([task(0), task(1)]) == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ib_2.19.3_one_hca", []),
        ("ib_2.4.7_sockets_listed_too", []),
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
def test_each_node_must_prove_the_hca_that_it_requests(name: str, expected: list[str]) -> None:
    assert find_codes({"vs001": IB, "vs002": read(sample(name))}) == expected


def test_a_missing_proof_is_named_with_node_request_and_lines() -> None:
    seen = {"vs001": IB, "vs002": SOCKET}
    (problem,) = transport_proof.problems({"vs001": ["mlx5_0"], "vs002": ["mlx5_0"]}, seen)
    assert problem.code == "TRANSPORT"
    assert problem.message == (
        "node vs002: the case asks for InfiniBand on mlx5_0; NCCL took Socket eno2 (lines 6, 7)"
    )
    assert transport_proof.problems({}, seen) == ()
    unnamed = Fabric(networks=("IB",), lines=(3,))
    assert find_codes({"vs002": unnamed}, "vs001", "vs002") == ["TRANSPORT-UNPROVEN"] * 2


@pytest.mark.parametrize(
    ("before", "end"),
    [
        (ONE_HCA, "NCCL found no device (line 12) and took IB mlx5_0"),
        (b"", "; NCCL found no device (line 1)"),
    ],
)
def test_a_process_without_a_device_spoils_the_proof(before: bytes, end: str) -> None:
    log = before + b"testgpu2:1:2 [2] NCCL INFO NET/IB : No device found.\n"
    (problem,) = transport_proof.problems({"vs001": ["mlx5_0"]}, {"vs001": read(log)})
    assert problem.code == "TRANSPORT"
    assert problem.message.endswith(end)


def test_the_transport_of_a_gang_is_one_label_if_its_nodes_agree() -> None:
    label = transport_proof.transport
    assert label({"vs001": IB, "vs002": IB}) == "IB mlx5_0"
    assert label({"vs001": IB, "vs002": SOCKET}) == "vs001: IB mlx5_0; vs002: Socket eno2"
    assert label({"vs001": Fabric()}) == label({}) == "-"


def test_complaints_of_libraries_name_their_node() -> None:
    seen = {"vs001": IB, "vs002": read(sample("shm_small_2.5"))}
    (problem,) = transport_proof.library_problems(seen)
    assert problem.code == "SHM-SMALL"
    assert problem.message.startswith("node vs002: line 3: gpu2-ru7:2143:2561 [1] include/shm.h:28")
