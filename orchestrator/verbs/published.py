"""published: the published results that come with the package."""

from dataclasses import asdict, dataclass

from orchestrator import errors, words
from orchestrator.collecting import publications
from orchestrator.console import Voice
from orchestrator.measuring import published

HEAD = ("framework", "model", "precision", "batch", "case", "samples/s", "source")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which results are asked for, by glob patterns."""

    framework: str
    model: str
    precision: str


def list_published(wanted: Filter, voice: Voice) -> int:
    """Show the published results that fit; exit code.

    Raises:
        UsageError: none does.
    """
    everything = publications.known()
    found = published.selected(everything, wanted.framework, wanted.model, wanted.precision)
    if not found:
        seen = f"framework {wanted.framework}, model {wanted.model}, precision {wanted.precision}"
        raise errors.UsageError(
            f"nothing published fits {seen}",
            code="NO-PUBLISHED",
            fix=f"frameworks are {', '.join(dict.fromkeys(row.framework for row in everything))}",
        )
    rows = [
        (
            *(row.framework, row.model, row.precision, row.batch, row.placement),
            *(str(row.throughput), row.source),
        )
        for row in found
    ]
    voice.table(words.count(len(found), "published result"), HEAD, rows)
    voice.document([asdict(row) for row in found])
    return 0
