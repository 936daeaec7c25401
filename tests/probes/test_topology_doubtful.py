"""The topology parser: what does not fit is a problem or an error, never another value."""

import pytest

from orchestrator import errors
from orchestrator.model.problem import Problem
from orchestrator.probes import topology
from tests.probes.topo import OLD_TABLE, TABLE, code_of, codes

ODD = "not X for itself and a link for each of 4 devices"


@pytest.mark.parametrize(
    ("found", "becomes", "hcas", "code"),
    [
        ("  NIC1: mlx5_1\n", "", ("mlx5_0", "NIC1"), "HCA-NAME"),
        ("NIC1: mlx5_1\n", "NIC1: mlx5_1\n  NIC1: mlx5_7\n", ("mlx5_0", "NIC1"), "HCA-NAME"),
        ("NIC1: mlx5_1\n", "NIC1: mlx5_", ("mlx5_0", "NIC1"), "HCA-NAME"),
        ("NIC1: mlx5_1\n", "NIC1: mlx5_ib\n", ("mlx5_0", "mlx5_ib"), "HCA-NAME"),
        ("NIC1: mlx5_1\n", "NIC1: mlx5_0\n", ("?0", "?1"), "HCA-NAME"),
    ],
)
def test_a_legend_that_does_not_fit_is_a_problem(
    found: str, becomes: str, hcas: tuple[str, ...], code: str
) -> None:
    """A name is taken from the legend only where the legend gives exactly one."""
    fact = topology.parse(TABLE.replace(found, becomes))
    assert fact.hcas == hcas
    assert code in codes(fact)


@pytest.mark.parametrize(
    ("found", "becomes", "row", "says"),
    [
        ("GPU1\tNV2\t X \tSYS", "GPU1\tNV2\t X ", "GPU1", f"GPU1: {ODD};"),
        ("GPU1\tNV2\t X ", "GPU1\tNV2\tNV2\t X ", "GPU1", f"GPU1: {ODD}"),
        ("GPU1\tNV2\t X \tSYS", "GPU1\t X \tNV2\tSYS", "GPU1", f"GPU1: {ODD}"),
        ("GPU1\tNV2\t X \tSYS", "GPU1\tNV2\t X \t X ", "GPU1", f"GPU1: {ODD}"),
        ("GPU1\tNV2\t X ", "GPU1\tNV2\tPIX", "GPU1", f"GPU1: {ODD}"),
        (
            "GPU1\tNV2\t X \tSYS\tPIX\t8",
            "GPU1\tNV2\t X \tSYS\tPIX8",
            "GPU1",
            f"GPU1: {ODD}, but 'PIX8-15,24-31'",
        ),
        (
            "GPU1\tNV2\t X \tSYS\tPIX",
            "GPU1\tNV2\t X \tSYSPIX",
            "GPU1",
            f"GPU1: {ODD}, but 'SYSPIX'",
        ),
        ("mlx5_1\tSYS", "\tSYS", "mlx5_1", "mlx5_1: no row"),
        ("mlx5_1\tSYS\tPIX\tSYS\t X \t\n", "", "mlx5_1", "mlx5_1: no row"),
        ("mlx5_1\tSYS\tPIX\tSYS\t X \t\n", "mlx5_1", "mlx5_1", "mlx5_1: no row"),
        ("PIX\tSYS\t X \t\n", "PI", "mlx5_1", "mlx5_1: the text ends within its row"),
        ("mlx5_1\tSYS", "mlx5_0\tSYS", "mlx5_1", "mlx5_0: not"),
    ],
)
def test_a_row_that_does_not_fit_is_not_used(found: str, becomes: str, row: str, says: str) -> None:
    """Links of a row that is short, long, shifted, glued or absent are not given."""
    fact = topology.parse(OLD_TABLE.replace(found, becomes))
    assert list(fact.links) == [
        name for name in ("GPU0", "GPU1", "mlx5_0", "mlx5_1") if name != row
    ]
    assert fact.cpu_affinity["GPU1"] == (None if row == "GPU1" else "8-15,24-31")
    (problem, *_) = fact.problems
    assert problem.code == ("GLUED" if ", but" in says else "UNREADABLE")
    assert problem.message.startswith(says)


def test_a_row_that_no_column_has_is_told() -> None:
    """The header was cut, or the name."""
    fact = topology.parse(OLD_TABLE.replace("mlx5_1\tSYS", "mlx5_9\tSYS"))
    said = [problem.message for problem in fact.problems]
    assert said == ["mlx5_1: no row; not used", f"mlx5_9: {ODD}; not used"]


def test_a_repeated_row_is_not_used() -> None:
    """Of two rows for one device neither is believed."""
    fact = topology.parse(OLD_TABLE + "GPU1\tNV9\t X \tSYS\tPIX\t8-15\n")
    assert "GPU1" not in fact.links
    assert fact.cpu_affinity["GPU1"] is None
    assert fact.problems == (Problem("UNREADABLE", "GPU1: two rows; not used"),)


def test_only_the_first_of_two_tables_is_read() -> None:
    """Outputs of two nodes in one file are not mixed, and the second is mentioned."""
    fact = topology.parse(TABLE + TABLE.replace("NV18", "NV12").replace("mlx5", "mlx4"))
    assert fact.links == topology.parse(TABLE).links
    assert codes(fact) == ["UNREADABLE"]


def test_an_unknown_affinity_column_is_a_problem() -> None:
    """A misspelt or new title gives no values, and says so."""
    fact = topology.parse(TABLE.replace("NUMA Affinity", "NUMA Afinity"))
    assert fact.numa_affinity == {}
    assert fact.cpu_affinity == {"GPU0": None, "GPU1": None}
    assert codes(fact) == ["UNREADABLE", "AFFINITY", "AFFINITY"]


ROCM = "\tGPU0\tGPU1\nGPU0\t0\t40\nGPU1\t40\t0\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "EMPTY"),
        (" \n\t\n", "EMPTY"),
        ("bash: nvidia-smi: command not found\n", "NO-TABLE"),
        ("GPU0 and GPU1 are close\nGPU 0: Tesla V100 (UUID: GPU-1)\n", "NO-TABLE"),
        (TABLE.replace("NIC0\tNIC1\tCPU", "NIC0NIC1\tCPU"), "UNREADABLE"),
        (TABLE.replace("GPU0\tGPU1", "GPU0GPU1"), "NO-TABLE"),
        (TABLE.replace("NIC0\tNIC1\tCPU", "NIC0\tNIC1-\t1\tCPU"), "UNREADABLE"),
        (TABLE.replace("GPU0\tGPU1", "GPU0\tGPU0"), "UNREADABLE"),
        (TABLE.replace("NUMA Affinity", "CPU Affinity"), "UNREADABLE"),
        (TABLE.splitlines()[0] + "\n", "UNREADABLE"),
        (ROCM, "UNREADABLE"),
        (ROCM.replace("40", "XGMI"), "UNREADABLE"),
        (OLD_TABLE.replace("\t X ", "\t"), "UNREADABLE"),
    ],
)
def test_a_text_that_cannot_be_trusted_is_refused(text: str, code: str) -> None:
    """No table, or columns that have run together: an error with its code, and no values."""
    assert code_of(text) == code


def test_a_refusal_counts_rows_and_devices() -> None:
    """The message shows what does not fit."""
    said = "none of the 2 rows fits the 2 devices of the header"
    with pytest.raises(errors.LogError, match=said):
        topology.parse(ROCM)
