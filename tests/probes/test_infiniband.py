"""The parsers of `ibstat`, `ibv_devinfo`, `ofed_info` and GIDs: what differs from recordings."""

import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.facts import Gid, VerbsFacts
from orchestrator.probes import infiniband
from tests import SAMPLES

IBSTAT = SAMPLES / "ibstat"
TWO = (IBSTAT / "linux_rdma_mt4115_unindented.txt").read_text()
PANIC = (
    "ibpanic: [1400444] main: stat of IB device 'mlx5_8' failed: No such file or directory (2)\n"
)


@pytest.mark.parametrize("path", sorted(IBSTAT.glob("*.txt")), ids=lambda path: path.stem)
def test_a_paste_says_the_same(path: Path) -> None:
    """Indentation, line ends, prompts around the text and a lost last newline change nothing."""
    text = path.read_text()
    fact = infiniband.parse(text)
    flat = "\n".join(line.strip() for line in text.splitlines())
    assert infiniband.parse(flat) == fact
    assert infiniband.parse(flat.replace("\n", "\r\n\t")) == fact
    assert infiniband.parse(f"root@a:~# ibstat\n{flat}\nroot@a:~# ") == fact


@pytest.mark.parametrize(
    "text", [TWO + PANIC, PANIC + TWO, TWO.replace("CA 'mlx5_1'", PANIC + "CA 'mlx5_1'")]
)
def test_a_panic_keeps_the_good_adapters(text: str) -> None:
    """An adapter that cannot be asked is a problem in ibstat's words."""
    fact = infiniband.parse(text)
    assert fact.ports == infiniband.parse(TWO).ports
    (problem,) = fact.problems
    assert (problem.code, "device 'mlx5_8' failed" in problem.message) == ("UNREADABLE", True)


@pytest.mark.parametrize(("printed", "rate"), [("2.5", 2.5), ("40 (FDR10)", 40), ("10", 10)])
def test_a_rate_is_a_whole_number_but_for_one_lane_of_sdr(printed: str, rate: float) -> None:
    fact = infiniband.parse(TWO.replace("Rate: 100", f"Rate: {printed}", 1))
    assert [(port.rate_gbps, type(port.rate_gbps)) for port in fact.ports] == [
        (rate, type(rate)),
        (100, int),
    ]
    assert fact.problems == ()


LINES = {
    "CA type: MT4115\n": ("type", "mlx5_0 port 1: no CA type"),
    "Rate: 100\n": ("rate_gbps", "mlx5_0 port 1: no Rate"),
    "Firmware version: 12.26.4012\n": ("firmware", "mlx5_0 port 1: no Firmware version"),
}
RATES = ("100 Gb/sec", "2.", ".5", "2.5.5", "-1", "1e2", "1_00", "\u0661\u0660\u0660", "1" * 5000)


@pytest.mark.parametrize(
    ("found", "becomes", "key", "says"),
    [
        *((line, "", key, says) for line, (key, says) in LINES.items()),
        *(("Rate: 100\n", f"Rate: {it}\n", "rate_gbps", "line 11: cannot read") for it in RATES),
        ("Rate: 100\n", "Rate:\n", "rate_gbps", "line 11: cannot read 'Rate:'"),
        ("SM lid: 3\n", "SM lid: 0x3\n", "sm_lid", "line 14: cannot read 'SM lid: 0x3'"),
        ("Infini", "Infi", "link_layer", "line 17: cannot read 'Link layer: InfiBand'"),
        ("0300c5fffc\n", "0300c\n", "node_guid", "line 6: cannot read 'Node GUID: 0xec0d9a0300c'"),
    ],
)
def test_a_value_that_is_missing_or_unreadable_is_null(
    found: str, becomes: str, key: str, says: str
) -> None:
    """No other value changes, and a problem names it."""
    fact = infiniband.parse(TWO.replace(found, becomes, 1))
    first, second = infiniband.parse(TWO).ports
    assert fact.ports[1] == second
    assert asdict(fact.ports[0]) == {**asdict(first), key: None}
    assert [problem.code for problem in fact.problems] == ["UNREADABLE"]
    assert fact.problems[0].message.startswith(f"ibstat, {says}")


@pytest.mark.parametrize("end", ["Rate: 10", "SM lid: 33"])
def test_a_last_line_that_may_be_cut_is_not_used(end: str) -> None:
    """A cut rate of 100 is a rate of 10."""
    fact = infiniband.parse(TWO[: TWO.index("Rate:")] + end)
    assert (fact.ports[0].rate_gbps, fact.ports[0].sm_lid) == (None, None)
    assert f"cannot read {end!r}" in fact.problems[0].message


def test_lines_before_the_first_adapter_are_of_none() -> None:
    assert infiniband.parse(TWO[TWO.index("\n") :]).ports == infiniband.parse(TWO).ports[1:]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the text says 'nothing'"),
        ("a:~# ibstat\nbash: ibstat: command not found\n", "says 'bash: ibstat: c"),
        ("a:~# ibstat\n" + PANIC, "stat of IB device 'mlx5_8' failed"),
        ("mlx5_0\nmlx5_1\n", "the text says 'mlx5_1'"),
        ("CA 'mlx5_0'", "no line like CA 'mlx5_0' begins an adapter"),
        ("Port 1:\n", "no line like CA 'mlx5_0' begins an adapter"),
    ],
)
def test_a_text_without_adapters_is_refused(text: str, says: str) -> None:
    with pytest.raises(errors.LogError, match=says) as caught:
        infiniband.parse(text)
    assert caught.value.code == "UNREADABLE"


def test_no_adapter_that_programs_can_open_is_an_answer() -> None:
    for text in ("No IB devices found\n", "0 HCAs found:\n"):
        assert infiniband.parse_verbs(text) == VerbsFacts((), ())


@pytest.mark.parametrize("text", ["", "Welcome\n", "transport: InfiniBand (0)\n"])
def test_text_of_something_else_is_no_list_of_adapters(text: str) -> None:
    with pytest.raises(errors.LogError, match="no line like hca_id") as raised:
        infiniband.parse_verbs(text)
    assert raised.value.code == "UNREADABLE"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MLNX_OFED_LINUX-4.9-0.1.7.0:\n", "4.9-0.1.7.0"),
        ("OFED-internal-24.07-0.3.5.0.110:\n", "24.07-0.3.5.0.110"),
        ("", None),
        ("sh: 1: ofed_info: not found\n", None),
        ("MLNX_OFED_LINUX-4.9-0.1.7.0: MLNX_OFED_LINUX-5.3-1.0.0.1:\n", None),
    ],
)
def test_version_of_ofed_is_the_only_one_that_it_prints(text: str, expected: str | None) -> None:
    assert infiniband.ofed_version(text) == expected


def test_gids_are_read_with_place_type_and_interface(tmp_path: Path) -> None:
    """The kernel's files of a node of eight H100; places without an address are left out."""
    kinds = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}
    table = [line.split() for line in (SAMPLES / "roce/show_gids.txt").read_text().splitlines()[2:]]
    expected = set()
    for hca, port, index, gid, *_, kind, interface in (line for line in table if len(line) > 5):
        expected.add(Gid(hca, int(port), int(index), gid, interface, kinds[kind]))
        for name, text in (
            (f"gids/{index}", gid),
            ("gids/9", "0000:0000:0000:0000:0000:0000:0000:0000"),
            (f"gid_attrs/types/{index}", kinds[kind]),
            (f"gid_attrs/ndevs/{index}", interface),
        ):
            path = tmp_path / hca / "ports" / port / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
    argv = infiniband.gids_argv(str(tmp_path))
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    found = infiniband.parse_gids(done.stdout)
    assert len(found) == 8
    assert set(found) == expected
