"""published: the published results that come with the package."""

from dataclasses import asdict, astuple, dataclass

from orchestrator import errors, words
from orchestrator.collecting import publications
from orchestrator.console import Voice
from orchestrator.measuring import published

HEAD = (
    *("framework", "model", "precision", "batch", "case", "hardware"),
    *("throughput", "unit", "source"),
)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which results are asked for, by glob patterns."""

    framework: str
    model: str
    precision: str
    hardware: str


def list_published(selection: Filter, voice: Voice) -> int:
    """Show the published results that fit; exit code.

    Raises:
        UsageError: none does.
    """
    everything = publications.shipped()
    results = published.selected(everything, *astuple(selection))
    if not results:
        patterns = ", ".join(f"{name} {pattern}" for name, pattern in asdict(selection).items())
        raise errors.UsageError(
            f"nothing published fits {patterns}",
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
