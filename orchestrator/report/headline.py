"""The headline of a report, and what was measured, where, when and by what."""

from collections.abc import Iterable

from orchestrator import __version__, nodeset, words
from orchestrator.model.report import Report
from orchestrator.model.result import Result, Statistics
from orchestrator.report import labels, rounding
from orchestrator.report.page import Page
from orchestrator.report.tree import Span, Words


def sentence(page: Page) -> Words:
    """Say the highest median with its interval, speedup and hardware, and what it is good for."""
    report = page.report
    found = [(result, result.statistics) for result in report.results if result.statistics]
    if not found:
        return []
    result, statistics = max(found, key=lambda pair: pair[1].median)
    number = f"{rounding.throughput(report, statistics.median)} {report.unit}"
    first = page.say("headline.best", number=number, case=labels.of_case(report, result))
    parts = [""]
    if statistics.interval:
        ends = rounding.interval_words(statistics.interval, page.language)
        parts.append(page.say("headline.interval", interval=ends))
    if result.speedup is not None and result.case.world_size > 1:
        speedup, share = rounding.fixed(result.speedup, 2), rounding.share(result.efficiency)
        parts.append(page.say("headline.speedup", speedup=speedup, efficiency=share))
    if hardware := _hardware(page):
        parts.append(page.say("headline.hardware", hardware=hardware))
    end, trust = page.say("headline.end"), page.say(f"trust.{_trust(report, result, statistics)}")
    return [Span(first, look="strong"), f"{page.listed(parts)}{end}{trust}"]


def _trust(report: Report, result: Result, statistics: Statistics) -> str:
    """Return the gravest reason why a number cannot simply be trusted, else ``sound``."""
    marks = [*result.marks, *report.marks, *(mark for it in result.valid for mark in it.marks)]
    marks += report.canary.marks if report.canary else ()
    reasons = {
        "shared": report.shared_machine,
        "marked": bool(marks),
        "lacking": statistics.n < report.planned(result),
        "single": statistics.interval is None,
        "others": report.incomplete > 0,
    }
    return next((reason for reason, holds in reasons.items() if holds), "sound")


def facts(page: Page) -> Iterable[tuple[str, Words]]:
    """Yield names with their values; what is not known is left out."""
    report = page.report
    yield page.say("headline.what"), [_what(page)]
    if report.cluster:
        hardware = _hardware(page)
        where = page.say("colon").join(filter(None, (report.cluster, hardware)))
        yield page.say("headline.where"), [where]
    yield page.say("headline.source"), [report.source]
    if report.created:
        yield page.say("headline.when"), [words.moment(report.created)]
    elif report.began_ns:
        yield page.say("headline.when"), [_began(page)]
    if took := _took(page):
        yield page.say("headline.took"), [took]
    if report.image:
        digest = report.image_digest or page.say("method.no_digest")
        yield page.say("headline.image"), [page.listed((report.image, digest))]
    yield page.say("headline.version"), [_version(page)]
    if report.commands:
        spans: list[Span | str] = []
        for command in report.commands:
            spans += [page.say("comma"), Span(command, look="code")]
        yield page.say("headline.command"), spans[1:]


def _hardware(page: Page) -> str:
    """Return names of nodes and models of their GPUs or processors."""
    every = page.report.environment
    if not every:
        return ""
    models = dict.fromkeys(it.get("GPUs") or it.get("CPU", "") for it in every.values())
    return page.listed([nodeset.fold(list(every)), *filter(None, models)])


def _took(page: Page) -> str:
    """Return how long trials ran, and how many seconds of that were measured."""
    measured = [it for it in page.report.trials if it.state == "valid" and it.measured_s]
    parts = []
    if page.report.ran_s is not None:
        parts.append(page.say("headline.ran", duration=_duration(page, page.report.ran_s)))
    if measured:
        total = rounding.fixed(sum(it.measured_s or 0 for it in measured), 1)
        parts.append(page.say("headline.measured", seconds=total, count=len(measured)))
    return page.listed(parts)


def _what(page: Page) -> str:
    report = page.report
    parts = [report.title, page.say("headline.workload", workload=report.workload)]
    if report.experiment:
        parts.append(page.say("headline.playbook", playbook=report.experiment))
    return page.say("comma").join(parts)


def _duration(page: Page, seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, more = divmod(minutes, 60)
    key = "hours" if hours else "minutes"
    return page.say(f"duration.{key}", hours=hours, more=more, minutes=minutes, seconds=rest)


def _began(page: Page) -> str:
    """Say when the logs of a folder print their first steps; their time zone is not known."""
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
