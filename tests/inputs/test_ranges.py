"""Ranges in inventories: one entry for many nodes; mistakes lead to what was written."""

from pathlib import Path

import pytest

from orchestrator import errors, nodeset
from orchestrator.inputs import user_files
from orchestrator.model.cluster import Cluster

HEAD = "name: many\n"


def cluster(folder: Path, text: str) -> Cluster:
    path = folder / "many.yaml"
    path.write_text(HEAD + text)
    return user_files.cluster(str(path))[0]


def mistakes(folder: Path, text: str) -> list[str]:
    """As ``line:column: path: text``."""
    with pytest.raises(errors.ConfigError) as caught:
        cluster(folder, text)
    return [str(mistake).partition("many.yaml:")[2] for mistake in caught.value.mistakes]


def test_a_range_is_as_many_nodes_in_its_order(tmp_path: Path) -> None:
    """Names as wide as written; what else the entry says holds for each."""
    found = cluster(
        tmp_path,
        "nodes:\n"
        "  - name: vs[001-003,010]\n"
        "    address: 10.11.0.[2-4,130]\n"
        "    port: 2222\n"
        '  - {name: "r[1-2]-n[8-9]", address: "10.11.[1-2].[8-9]"}\n'
        "  - {name: last, address: 10.9.9.9}\n",
    )
    assert [(node.name, node.address, node.port) for node in found.members] == [
        ("vs001", "10.11.0.2", 2222),
        ("vs002", "10.11.0.3", 2222),
        ("vs003", "10.11.0.4", 2222),
        ("vs010", "10.11.0.130", 2222),
        ("r1-n8", "10.11.1.8", 22),
        ("r1-n9", "10.11.1.9", 22),
        ("r2-n8", "10.11.2.8", 22),
        ("r2-n9", "10.11.2.9", 22),
        ("last", "10.9.9.9", 22),
    ]


def test_hcas_have_ranges_in_defaults_and_of_a_node(tmp_path: Path) -> None:
    """Each with the rate that the entry says."""
    found = cluster(
        tmp_path,
        'defaults: {hcas: [{name: "mlx5_[0-7]", rate_gbps: 400}]}\n'
        "nodes:\n"
        "  - {name: aa, address: 10.0.0.1}\n"
        '  - {name: bb, address: 10.0.0.2, hcas: [{name: "mlx5_[0,3]", rate_gbps: 100}]}\n',
    )
    first, second = found.members
    assert [hca.name for hca in first.hcas] == [f"mlx5_{number}" for number in range(8)]
    assert {hca.rate_gbps for hca in first.hcas} == {400}
    assert [(hca.name, hca.rate_gbps) for hca in second.hcas] == [("mlx5_0", 100), ("mlx5_3", 100)]


@pytest.mark.parametrize(
    ("name", "address", "place"),
    [
        ("vs[1-4]", "10.0.0.[1-3]", "4:14: nodes[0].address: address stands for 3, name for 4;"),
        ("vs[1-4]", "10.0.0.1", "4:14: nodes[0].address: address stands for 1, name for 4;"),
        ("vs1", "10.0.0.[1-2]", "4:14: nodes[0].address: address stands for 2, name for 1;"),
        ("vs[4-1]", "10.0.0.1", "3:11: nodes[0].name: 'vs[4-1]': [4-1] is no range;"),
        ("vs[1-]", "10.0.0.1", "3:11: nodes[0].name: 'vs[1-]': [1-] is no range;"),
        ("vs[a]", "10.0.0.[1-2]", "3:11: nodes[0].name: 'vs[a]': [a] is no range;"),
        ("vs[]", "10.0.0.1", "3:11: nodes[0].name: 'vs[]': [] is no range;"),
        ("vs[01-128]", "10.0.0.1", "3:11: nodes[0].name: 'vs[01-128]': [01-128] is no range;"),
        ("vs[1-3,2]", "10.0.0.1", "3:11: nodes[0].name: 'vs[1-3,2]': [1-3,2] has a number twice;"),
        ("vs[1-3", "10.0.0.1", "3:11: nodes[0].name: 'vs[1-3': a bracket without its other one;"),
        ("vs[1-5000]", "10.0.0.1", "3:11: nodes[0].name: 'vs[1-5000]': 1-5000 is 5000 names;"),
        ("v[1-99]s[1-99]", "10.0.0.1", "3:11: nodes[0].name: 'v[1-99]s[1-99]': 9801 names;"),
    ],
)
def test_a_bad_range_is_a_mistake_with_its_place(
    tmp_path: Path, name: str, address: str, place: str
) -> None:
    """Once, whatever it might have stood for."""
    (mistake,) = mistakes(tmp_path, f"nodes:\n  - name: {name}\n    address: {address}\n")
    assert mistake.startswith(place)
    assert "; needed " in mistake


def test_what_is_wrong_with_a_ranged_entry_is_told_once_where_it_is_written(
    tmp_path: Path,
) -> None:
    """And a conflict of entries after it has their own place, not that of an expanded list."""
    text = (
        "nodes:\n"
        "  - name: vs[001-128]\n"
        "    address: 10.11.0.[2-129]\n"
        "    port: 99999\n"
        "  - {name: vs007, address: 10.11.9.9}\n"
        '  - {name: "x[1-2]", address: "10.11.0.[8-9]"}\n'
    )
    assert mistakes(tmp_path, text.replace("99999", "22")) == [
        "6:12: nodes[1].name: 'vs007' is also the name of nodes[6]; needed one name for each node",
        "7:31: nodes[2].address: '10.11.0.8' is also the address of nodes[6];"
        " needed one address for each node",
        "7:31: nodes[2].address: '10.11.0.9' is also the address of nodes[7];"
        " needed one address for each node",
    ]
    assert mistakes(tmp_path, text)[0].startswith("5:11: nodes[0].port: got 99999;")


def test_names_unfold_as_they_fold() -> None:
    """The notation of messages is that of inventories."""
    names = [f"vs{number:03}" for number in (*range(1, 100), 105)]
    assert nodeset.unfold(nodeset.fold(names), 4096) == names
    assert nodeset.unfold("plain", 1) == ["plain"]
    assert nodeset.unfold("n[0-10]", 99)[::5] == ["n0", "n5", "n10"]
