"""The table of findings: how grave each is, what it means and what to do; docs show it too."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from orchestrator.model.site import Finding, Severity


@dataclass(frozen=True, slots=True)
class Kind:
    """One code of ``findings.toml``.

    Args:
        means, cause: for the page of codes, in Markdown.
        fix: what to do, unless a check knows better.
        severity: None where it depends on what was seen, and for an error that is no finding.
    """

    means: str
    cause: str
    fix: str
    severity: Severity | None = None


@cache
def table() -> Mapping[str, Mapping[str, Kind]]:
    """Return the kinds by the page's section and their code, in the page's order."""
    text = resources.files("orchestrator.model").joinpath("findings.toml").read_text("utf-8")
    return {
        section: {code: Kind(**kind) for code, kind in kinds.items()}
        for section, kinds in tomllib.loads(text).items()
    }


def found(
    code: str,
    node: str,
    seen: str,
    expected: str,
    fix: str = "",
    *,
    severity: Severity | None = None,
) -> Finding:
    """Return the finding.

    Args:
        fix, severity: by default the table's.
    """
    kind = _by_code().get(code)
    grave = severity or (kind.severity if kind else None)
    if grave is None:
        raise ValueError(f"{code} has no severity in findings.toml; needed one here")
    return Finding(grave, code, node, seen, expected, fix or (kind.fix if kind else ""))


@cache
def _by_code() -> Mapping[str, Kind]:
    return {code: kind for kinds in table().values() for code, kind in kinds.items()}
