"""What was measured, where, when, by what: the first facts of every report."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator import __version__, nodeset, words
from orchestrator.report.markdown_page import Page


@dataclass(frozen=True, slots=True)
class Fact:
    """A name with its values; ``is_code`` where they are words for a shell or a file."""

    name: str
    values: tuple[str, ...]
    is_code: bool = False


def facts(page: Page) -> Iterable[Fact]:
    """One after the other; what is not known is left out."""
    report = page.report
    yield Fact(page.say("headline.what"), (_what(page),))
    if report.cluster:
        yield Fact(page.say("headline.where"), (_where(page),))
    yield Fact(page.say("headline.source"), (report.source,))
    if report.created:
        yield Fact(page.say("headline.when"), (words.moment(report.created),))
    elif report.began_ns:
        yield Fact(page.say("headline.when"), (_began(page),))
    if report.image:
        digest = report.image_digest or page.say("method.no_digest")
        yield Fact(page.say("headline.image"), (f"{report.image}, {digest}",))
    yield Fact(page.say("headline.version"), (_version(page),))
    if report.commands:
        yield Fact(page.say("headline.command"), report.commands, is_code=True)


def _what(page: Page) -> str:
    report = page.report
    parts = [report.title, page.say("headline.workload", workload=report.workload)]
    if report.experiment:
        parts.append(page.say("headline.playbook", playbook=report.experiment))
    return page.say("comma").join(parts)


def _where(page: Page) -> str:
    report = page.report
    if not report.environment:
        return report.cluster
    gpus = dict.fromkeys(rows["GPUs"] for rows in report.environment.values() if "GPUs" in rows)
    where = [nodeset.fold(list(report.environment)), *gpus]
    return f"{report.cluster}{page.say('colon')}{page.say('comma').join(where)}"


def _began(page: Page) -> str:
    """When the logs of a folder print their first steps; they do not tell of which zone."""
    every = page.report.began_ns
    known = [began_ns for began_ns in every if began_ns is not None]
    if not known:
        return page.say("headline.no_clock")
    first, last = (words.by_clock(began_ns) for began_ns in (min(known), max(known)))
    began = page.say("headline.began", first=first)
    if first != last:
        began = page.say("headline.began.between", first=first, last=last)
    lacking = len(every) - len(known)
    return began + page.say("headline.began.some", count=lacking) if lacking else began


def _version(page: Page) -> str:
    ran = page.report.written_by
    if not ran or ran == __version__:
        return f"dlperf-orch {__version__}"
    return page.say("headline.versions", ran=ran, reported=__version__)
