"""The InfiniBand parser: what it makes of real `ibstat` outputs and of broken ones."""

import json

import pytest

import tests
from orchestrator import errors
from orchestrator.model.facts import InfinibandFacts
from orchestrator.model.site import HcaPort
from orchestrator.probes import infiniband

SAMPLES = tests.SAMPLES / "ibstat"

# One line for each port, copied from the samples: name, type, firmware, node GUID,
# port, state, physical state, rate, base lid, SM lid, link layer.
EXPECTED = {
    "archwiki_mlx4_two_ports_active_down.txt": """
        mlx4_0 MT25418 2.9.1000 0x0002c90300002f78 1 Active LinkUp 20 3 3 InfiniBand
        mlx4_0 MT25418 2.9.1000 0x0002c90300002f78 2 Down Polling 10 0 0 InfiniBand
    """,
    "dlperf_seed_vs002_mt4115.txt": """
        mlx5_0 MT4115 12.27.1016 0x506b4b0300f37674 1 Active LinkUp 100 56 27 InfiniBand
    """,
    "gpud_ibstat.47.0.a100.all.active.0.txt": """
        mlx5_0 MT4126 22.35.2302 0x1e918efffe7a03a0 1 Active LinkUp 200 0 0 Ethernet
        mlx5_1 MT4126 28.37.1014 0x6b9d7f2c99902a63 1 Active LinkUp 200 1369 83 InfiniBand
        mlx5_2 MT4126 28.37.1014 0xb6f5686b2a0384d3 1 Active LinkUp 200 1372 83 InfiniBand
        mlx5_3 MT4126 28.37.1014 0xbcaf66ff1fb84de3 1 Active LinkUp 200 1374 83 InfiniBand
        mlx5_4 MT4126 28.37.1014 0xff764023a4d54d1f 1 Active LinkUp 200 1379 83 InfiniBand
        mlx5_5 MT4126 28.37.1014 0x85b89152a49a6c7f 1 Active LinkUp 200 1383 83 InfiniBand
        mlx5_6 MT4126 28.37.1014 0xf405e6a5caf90755 1 Active LinkUp 200 1387 83 InfiniBand
        mlx5_7 MT4126 28.37.1014 0x8127c63ef9e8fc5f 1 Active LinkUp 200 1392 83 InfiniBand
        mlx5_8 MT4126 28.37.1014 0x4c1037318e9cd20a 1 Active LinkUp 200 1396 83 InfiniBand
    """,
    "gpud_ibstat.47.0.some.down.0.txt": """
        mlx5_0 MT4129 28.39.1002 0x946dae0300cde72c 1 Active LinkUp 400 75 334 InfiniBand
        mlx5_1 MT4125 22.38.1002 0x946dae0300c2b690 1 Active LinkUp 100 0 0 Ethernet
        mlx5_10 MT4129 28.39.1002 0x946dae0300cde884 1 Active LinkUp 400 828 334 InfiniBand
        mlx5_11 MT4129 28.39.1002 0x946dae0300cdea00 1 Active LinkUp 400 944 334 InfiniBand
        mlx5_2 MT4125 22.38.1002 0x946dae0300c2b691 1 Down Disabled 40 0 0 Ethernet
        mlx5_3 MT4129 28.39.1002 0x946dae0300cde728 1 Active LinkUp 400 143 334 InfiniBand
        mlx5_4 MT4129 28.39.1002 0x946dae0300cde78c 1 Active LinkUp 400 343 334 InfiniBand
        mlx5_5 MT4129 28.39.1002 0x946dae0300cde780 1 Active LinkUp 400 454 334 InfiniBand
        mlx5_6 MT4129 28.39.1002 0x946dae0300cde8ac 1 Active LinkUp 400 597 334 InfiniBand
        mlx5_7 MT4125 22.38.1002 0x946dae0300c2b648 1 Down Disabled 40 0 0 Ethernet
        mlx5_8 MT4125 22.38.1002 0x946dae0300c2b649 1 Down Disabled 40 0 0 Ethernet
        mlx5_9 MT4129 28.39.1002 0x946dae0300cde9c8 1 Active LinkUp 400 771 334 InfiniBand
    """,
    "l2fwd_nv_issue6_connectx6dx_roce_2x100.txt": """
        mlx5_0 MT4125 22.32.2004 0x0c42a103001dd12a 1 Active LinkUp 100 0 0 Ethernet
        mlx5_1 MT4125 22.32.2004 0x0c42a103001dd12b 1 Active LinkUp 100 0 0 Ethernet
    """,
    "linux_rdma_mt4115_unindented.txt": """
        mlx5_0 MT4115 12.26.4012 0xec0d9a0300c5fffc 1 Active LinkUp 100 3 3 InfiniBand
        mlx5_1 MT4115 12.26.4012 0xec0d9a0300c5fffd 1 Active LinkUp 100 1 1 InfiniBand
    """,
    "soft_roce_rxe0.txt": """
        rxe0 None None 0x268a07fffe066e8a 1 Active LinkUp 100 0 0 Ethernet
    """,
}

TWO = (SAMPLES / "linux_rdma_mt4115_unindented.txt").read_text()
PANIC = (
    "ibpanic: [1400444] main: stat of IB device 'mlx5_8' failed: No such file or directory (2)\n"
)


def ports(fact: InfinibandFacts) -> list[str]:
    """One line for each port, as in ``EXPECTED``."""
    return [
        f"{port.name} {port.type} {port.firmware} {port.node_guid} {port.port} {port.state}"
        f" {port.physical_state} {port.rate_gbps} {port.base_lid} {port.sm_lid} {port.link_layer}"
        for port in fact.ports
    ]


def lines(text: str) -> list[str]:
    """The lines of ``text`` without their indentation."""
    return [line.strip() for line in text.strip().splitlines()]


def codes(fact: InfinibandFacts) -> list[str]:
    """The codes of all problems, in order."""
    return [problem.code for problem in fact.problems]


def test_every_sample_has_an_expectation() -> None:
    """A sample that is added without its values fails here."""
    assert {path.name for path in SAMPLES.glob("*.txt")} == EXPECTED.keys()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_sample_says_what_is_printed(name: str) -> None:
    """Every sample gives all its ports, in the order printed, and no problem."""
    fact = infiniband.parse((SAMPLES / name).read_text())
    assert ports(fact) == lines(EXPECTED[name])
    assert fact.problems == ()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_paste_says_the_same(name: str) -> None:
    """Indentation, line ends, prompts around the text and a lost last newline change nothing."""
    text = (SAMPLES / name).read_text()
    fact = infiniband.parse(text)
    flat = "\n".join(line.strip() for line in text.splitlines())
    assert infiniband.parse(flat) == fact
    assert infiniband.parse(flat.replace("\n", "\r\n\t")) == fact
    assert infiniband.parse(f"root@a:~# ibstat\n{flat}\nroot@a:~# ") == fact


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_cut_sample_never_gives_another_value(name: str) -> None:
    """Wherever a text ends, a value is right, or null with a problem."""
    text = (SAMPLES / name).read_text()
    whole = {(port.name, port.port): port for port in infiniband.parse(text).ports}
    for end in range(0, len(text), 3):
        try:
            fact = infiniband.parse(text[:end])
        except errors.LogError:
            continue
        for port in fact.ports:
            full = whole[port.name, port.port]
            assert fact.problems or port == full
            for key in HcaPort.__slots__:
                assert getattr(port, key) in (None, getattr(full, key))


@pytest.mark.parametrize(
    "text", [TWO + PANIC, PANIC + TWO, TWO.replace("CA 'mlx5_1'", PANIC + "CA 'mlx5_1'")]
)
def test_a_panic_keeps_the_good_adapters(text: str) -> None:
    """An adapter that cannot be asked is a problem in ibstat's words; the others stay."""
    fact = infiniband.parse(text)
    assert fact.ports == infiniband.parse(TWO).ports
    assert codes(fact) == ["UNREADABLE"]
    assert "stat of IB device 'mlx5_8' failed" in fact.problems[0].message


@pytest.mark.parametrize(
    "rate",
    ["", "100 Gb/sec", "2.", ".5", "2.5.5", "-1", "1e2", "1_00", "\u0661\u0660\u0660", "1" * 5000],
)
def test_a_rate_that_is_no_number_is_null(rate: str) -> None:
    """Only ASCII digits are a rate; anything else is null and named."""
    fact = infiniband.parse(TWO.replace("Rate: 100", f"Rate: {rate}", 1))
    assert [port.rate_gbps for port in fact.ports] == [None, 100]
    assert codes(fact) == ["UNREADABLE"]


def test_the_rate_of_one_lane_of_sdr_is_no_whole_number() -> None:
    """ibstat prints `2.5`, also of software adapters; whole rates stay whole."""
    fact = infiniband.parse(TWO.replace("Rate: 100", "Rate: 2.5", 1))
    assert json.dumps([port.rate_gbps for port in fact.ports]) == "[2.5, 100]"
    assert codes(fact) == []


def test_the_rate_of_fdr10_is_40() -> None:
    """ibstat prints `40 (FDR10)` for FDR10, whose signalling is not that of QDR."""
    fact = infiniband.parse(TWO.replace("Rate: 100", "Rate: 40 (FDR10)"))
    assert [port.rate_gbps for port in fact.ports] == [40, 40]
    assert codes(fact) == []


@pytest.mark.parametrize(
    ("found", "becomes", "says"),
    [
        ("Rate: 100\n", "", "mlx5_0 port 1: no Rate"),
        ("SM lid: 3\n", "SM lid: 0x3\n", "line 14: cannot read 'SM lid: 0x3'"),
        (
            "Link layer: InfiniBand\n",
            "Link layer: Infini\n",
            "line 17: cannot read 'Link layer: Infini'",
        ),
        ("Firmware version: 12.26.4012\n", "", "mlx5_0 port 1: no Firmware version"),
        (
            "Node GUID: 0xec0d9a0300c5fffc\n",
            "Node GUID: 0xec0d\n",
            "line 6: cannot read 'Node GUID: 0xec0d'",
        ),
    ],
)
def test_a_value_that_is_missing_or_unreadable_is_null(found: str, becomes: str, says: str) -> None:
    """One value becomes null, with a problem that says which; all others stay."""
    before, after = infiniband.parse(TWO), infiniband.parse(TWO.replace(found, becomes, 1))
    (problem,) = after.problems
    assert (problem.code, problem.message) == ("UNREADABLE", f"ibstat, {says}")
    words = zip(" ".join(ports(before)).split(), " ".join(ports(after)).split(), strict=True)
    assert [new for old, new in words if old != new] == ["None"]


@pytest.mark.parametrize("end", ["Rate: 10", "SM lid: 33"])
def test_a_last_line_that_may_be_cut_is_not_used(end: str) -> None:
    """A cut rate of 100 is a rate of 10."""
    fact = infiniband.parse(TWO[: TWO.index("Rate:")] + end)
    assert (fact.ports[0].rate_gbps, fact.ports[0].sm_lid) == (None, None)
    assert f"cannot read {end!r}" in fact.problems[0].message


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
    """Without any port there is an error, with what ibstat said instead."""
    with pytest.raises(errors.LogError, match=says) as caught:
        infiniband.parse(text)
    assert caught.value.code == "UNREADABLE"
