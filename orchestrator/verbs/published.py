"""published: the published results that come with the package."""

from dataclasses import asdict, dataclass
from importlib import resources

from orchestrator import errors, published, words
from orchestrator.console import Voice
from orchestrator.model.report import PublishedResult

HEAD = ("framework", "model", "precision", "batch", "case", "samples/s", "source")


@dataclass(frozen=True, slots=True)
class Wish:
    """Which results are asked for, by glob patterns."""

    framework: str
    model: str
    precision: str


def known() -> tuple[PublishedResult, ...]:
    """Every published result that comes with the package."""
    text = resources.files("orchestrator").joinpath(published.FILE).read_text("utf-8")
    return published.rows(text)


def list_published(wish: Wish, voice: Voice) -> int:
    """Show the published results that fit; exit code.

    Raises:
        UsageError: none does.
    """
    everything = known()
    found = published.selected(everything, wish.framework, wish.model, wish.precision)
    if not found:
        seen = f"framework {wish.framework}, model {wish.model}, precision {wish.precision}"
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
