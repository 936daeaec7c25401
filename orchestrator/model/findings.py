"""The table of findings: how grave each is, what was expected and what to do; docs show it too."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from orchestrator.model.site import Finding, Severity


@dataclass(frozen=True, slots=True)
class Kind:
    """One code of ``findings.toml``; a check may know better what to do and what was expected.

    Args:
        means, cause: for the page of codes, in Markdown.
        severity: None where it depends on what was seen, and for an error that is no finding.
    """

    means: str
    cause: str
    fix: str
    expected: str = ""
    severity: Severity | None = None


@cache
def table() -> Mapping[str, Mapping[str, Kind]]:
    """Return the kinds by the page's section and their code, in the page's order."""
    text = resources.files("orchestrator.model").joinpath("findings.toml").read_text("utf-8")
    return {
        section: {code: Kind(**kind) for code, kind in kinds.items()}
        for section, kinds in tomllib.loads(text).items()
    }


def describe(code: str) -> Kind:
    """Return the table's entry for a code; an empty one for a code that it lacks."""
    return next((kinds[code] for kinds in table().values() if code in kinds), Kind("", "", ""))


def found(
    code: str,
    node: str,
    seen: str,
    expected: str = "",
    fix: str = "",
    *,
    severity: Severity | None = None,
) -> Finding:
    """Return the finding, with the table's words and severity where none are given."""
    kind = describe(code)
    grave = severity or kind.severity
    if grave is None:
        raise ValueError(f"{code} has no severity in findings.toml; needed one here")
    return Finding(grave, code, node, seen, expected or kind.expected, fix or kind.fix)
