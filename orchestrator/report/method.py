"""The method section: how the numbers were measured."""

from collections.abc import Iterable

from orchestrator.model.experiment import Method
from orchestrator.report.markdown_page import Page, escaped


def method(page: Page) -> str:
    """One line for each thing that a reader needs to repeat the measurement."""
    return "\n".join(f"- {line}" for line in _lines(page))


def _lines(page: Page) -> Iterable[str]:
    report = page.report
    yield page.say("method.source", workload=report.workload, source=escaped(report.source))
    if report.method is not None:
        yield _repeats(page, report.method)
    yield _rule(page)
    yield page.say("method.median")
    if report.layout.kind == "groups":
        yield page.say("method.latency_memory")
    yield page.say("method.speedup")
    yield from _operations(page)
    if report.published:
        yield page.say("method.published")
    if report.image:
        digest = report.image_digest or page.say("method.no_digest")
        yield page.say("method.image", image=report.image, digest=digest, cluster=report.cluster)
    if report.added_env:
        pairs = (f"{name}={value}" for name, value in sorted(report.added_env.items()))
        yield page.say("method.env", env=escaped(", ".join(pairs)))


def _repeats(page: Page, method: Method) -> str:
    often, more = method.repeats, {"order": page.say(f"order.{method.pack}")}
    if isinstance(often, int):
        return page.say("method.repeats", repeats=often, iterations=method.iterations, **more)
    more |= {"least": str(often.min), "most": str(often.max), "until": often.until_interval}
    return page.say("method.until", iterations=method.iterations, **more)


def _rule(page: Page) -> str:
    rule, window = page.report.rule, page.report.window
    if rule == "reported":
        return page.say("method.reported")
    if rule is None or window is None:
        return page.say("method.by_log")
    first, last = window
    return page.say(f"method.{rule}", first=first, last=last, steps=last - first)


def _operations(page: Page) -> Iterable[str]:
    if page.report.step_flops:
        yield page.say("method.tflops")
        if page.report.peak_tflops:
            yield page.say("method.peak", peak=page.report.peak_tflops)
