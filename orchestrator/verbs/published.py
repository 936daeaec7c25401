"""published: the published results that come with the package."""

from dataclasses import asdict

from orchestrator import errors, words
from orchestrator.collecting import package
from orchestrator.console import Voice
from orchestrator.measuring import published

HEAD = (
    *("framework", "model", "precision", "batch", "case", "hardware"),
    *("throughput", "unit", "source"),
)


def list_published(voice: Voice, **patterns: str) -> int:
    """Show the published results that fit; exit code.

    Args:
        patterns: globs for framework, model, precision and hardware.

    Raises:
        UsageError: none does.
    """
    everything = package.published_results()
    results = published.select(everything, patterns)
    if not results:
        named = ", ".join(f"{name} {pattern}" for name, pattern in patterns.items())
        raise errors.UsageError(
            f"nothing published fits {named}",
            code="NO-PUBLISHED",
            fix=f"frameworks are {', '.join(dict.fromkeys(row.framework for row in everything))}",
        )
    rows = [
        (
            *(row.framework, row.model, row.precision, row.batch, row.placement),
            *(row.hardware, str(row.throughput), row.unit, row.source),
        )
        for row in results
    ]
    voice.table(words.count(len(results), "published result"), HEAD, rows)
    voice.document([asdict(row) for row in results])
    return 0
