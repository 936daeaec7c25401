"""Ranges in inventories: one entry for many nodes; errors are placed at what was written."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator import errors, nodeset
from orchestrator.files import yaml_reader
from orchestrator.inputs import user_files
from orchestrator.model.cluster import Cluster


def cluster(text: str) -> Cluster:
    return user_files.judged_cluster(yaml_reader.document(f"name: many\n{text}", "it"))


def mistakes(text: str) -> list[str]:
    """Return each error as ``line:column: path: text``."""
    with pytest.raises(errors.ConfigError) as caught:
        cluster(text)
    return [str(mistake).removeprefix("it:") for mistake in caught.value.mistakes]


def test_a_range_is_as_many_nodes_in_its_order() -> None:
    """Names are as wide as written; the other settings of the entry are those of each node."""
    found = cluster(
        "nodes:\n"
        "  - name: vs[001-003,010]\n"
        "    address: 10.11.0.[2-4,130]\n"
        "    port: 2222\n"
        '  - {name: "r[1-2]-n[8-9]", address: "10.11.[1-2].[8-9]"}\n'
        "  - {name: last, address: 10.9.9.9}\n",
    )
    assert [(node.name, node.address, node.port) for node in found.members] == [
        *(("vs001", "10.11.0.2", 2222), ("vs002", "10.11.0.3", 2222)),
        *(("vs003", "10.11.0.4", 2222), ("vs010", "10.11.0.130", 2222)),
        *(("r1-n8", "10.11.1.8", 22), ("r1-n9", "10.11.1.9", 22)),
        *(("r2-n8", "10.11.2.8", 22), ("r2-n9", "10.11.2.9", 22)),
        ("last", "10.9.9.9", 22),
    ]


def test_adapters_have_ranges_in_defaults_and_of_a_node() -> None:
    found = cluster(
        'defaults: {hcas: [{name: "mlx5_[0-7]", rate_gbps: 400}]}\n'
        "nodes:\n"
        "  - {name: aa, address: 10.0.0.1}\n"
        '  - {name: bb, address: 10.0.0.2, hcas: [{name: "mlx5_[0,3]", rate_gbps: 100}]}\n',
    )
    first, second = ([(hca.name, hca.rate_gbps) for hca in node.hcas] for node in found.members)
    assert first == [(f"mlx5_{number}", 400) for number in range(8)]
    assert second == [("mlx5_0", 100), ("mlx5_3", 100)]


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
def test_a_bad_range_is_one_error_at_its_place(name: str, address: str, place: str) -> None:
    (mistake,) = mistakes(f"nodes:\n  - name: {name}\n    address: {address}\n")
    assert mistake.startswith(place)
    assert "; needed " in mistake


def test_an_error_of_a_ranged_entry_is_reported_once_at_the_entry() -> None:
    """A conflict of entries after it has their own place, not that of the expanded list."""
    text = (
        "nodes:\n"
        "  - name: vs[001-128]\n"
        "    address: 10.11.0.[2-129]\n"
        "    port: 99999\n"
        "  - {name: vs007, address: 10.11.9.9}\n"
        '  - {name: "x[1-2]", address: "10.11.0.[8-9]"}\n'
    )
    also = "is also the {0} of nodes[{1}]; needed one {0} for each node"
    assert mistakes(text.replace("99999", "22")) == [
        f"6:12: nodes[1].name: 'vs007' {also.format('name', 6)}",
        f"7:31: nodes[2].address: '10.11.0.8' {also.format('address', 6)}",
        f"7:31: nodes[2].address: '10.11.0.9' {also.format('address', 7)}",
    ]
    assert mistakes(text)[0].startswith("5:11: nodes[0].port: got 99999;")


@given(st.sets(st.integers(0, 200), min_size=1), st.integers(1, 4))
@example({*range(1, 100), 105}, 3)
@example({*range(11)}, 1)
def test_names_unfold_as_they_fold(numbers: set[int], width: int) -> None:
    """Messages and inventories have one notation."""
    names = [f"vs{number:0{width}}" for number in sorted(numbers)]
    assert nodeset.unfold(nodeset.fold(names), 4096) == names
    assert nodeset.unfold("plain", 1) == ["plain"]
