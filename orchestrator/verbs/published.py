"""published: the published results that come with the package."""

from dataclasses import asdict
from typing import Annotated

import typer

from orchestrator import errors, words
from orchestrator.cli.command import Face, command
from orchestrator.collecting import package
from orchestrator.measuring import published

FIELDS = ("framework", "model", "precision", "hardware")
SPARE = ("suite", "interconnect", "source", "unit")


@command("published", "published --framework 'oneflow-*' --hardware 'V100*'")
def list_published(
    face: Face,
    framework: Annotated[str, typer.Option(metavar="GLOB", help="Such as oneflow-*.")] = "*",
    model: Annotated[str, typer.Option(metavar="GLOB", help="Such as bert*.")] = "*",
    precision: Annotated[str, typer.Option(metavar="GLOB", help="Such as amp*.")] = "*",
    hardware: Annotated[str, typer.Option(metavar="GLOB", help="Such as A100*.")] = "*",
) -> int:
    everything = package.published_results()
    globs = (framework, model, precision, hardware)
    patterns = dict(zip(FIELDS, globs, strict=True))
    results = published.select(everything, patterns)
    if not results:
        raise errors.UsageError(
            "nothing published fits "
            + ", ".join(f"{name} {pattern}" for name, pattern in patterns.items()),
            code="NO-PUBLISHED",
            fix=f"frameworks are {', '.join(dict.fromkeys(row.framework for row in everything))}",
        )
    rows = [asdict(row) for row in results]
    face.voice.listing(words.count(len(rows), "published result"), rows, SPARE)
    face.voice.document(rows)
    return 0
