"""The parsers of `ibstat`, `ibv_devinfo`, `ofed_info` and GIDs: what differs from recordings."""

import subprocess
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.model.facts import Gid, VerbsFacts
from orchestrator.probes import infiniband
from tests import SAMPLES

IBSTAT = SAMPLES / "ibstat"


@pytest.mark.parametrize("path", sorted(IBSTAT.glob("*.txt")), ids=lambda path: path.stem)
def test_a_paste_gives_the_same_facts(path: Path) -> None:
    """Indentation, line ends, prompts around the text and a lost last newline change nothing."""
    text = path.read_text()
    fact = infiniband.parse(text)
    flat = "\n".join(line.strip() for line in text.splitlines())
    assert infiniband.parse(flat) == fact
    assert infiniband.parse(flat.replace("\n", "\r\n\t")) == fact
    assert infiniband.parse(f"root@a:~# ibstat\n{flat}\nroot@a:~# ") == fact


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
