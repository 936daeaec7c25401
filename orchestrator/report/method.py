"""The method section: how the numbers were measured."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from orchestrator.model.experiment import Method
from orchestrator.report.markdown_page import Page, escaped, plain

CODE = frozenset({"workload", "image", "cluster"})
"""What stands in backquotes, where Markdown takes a backslash as it is."""


class Line(NamedTuple):
    """The key of a text, and what stands in it."""

    key: str
    values: Mapping[str, str | int | float] = {}


def method(page: Page) -> str:
    """One line for each thing that a reader needs to repeat the measurement."""
    return "\n".join(f"- {_markdown(page, line)}" for line in lines(page))


def _markdown(page: Page, line: Line) -> str:
    values = {name: _shown(name, value) for name, value in line.values.items()}
    return page.say(line.key, **values)


def _shown(name: str, value: str | int | float) -> str | int | float:
    if not isinstance(value, str):
        return value
    return plain(value).replace("`", "'") if name in CODE else escaped(value)


def lines(page: Page) -> Iterable[Line]:
    """The same, whatever format they are written in; in the texts, names stand in backquotes."""
    report = page.report
    yield Line("method.source", {"workload": report.workload, "source": report.source})
    if report.method is not None:
        yield _repeats(page, report.method)
    yield _rule(page)
    yield Line("method.median")
    if report.layout.kind == "groups":
        yield Line("method.latency_memory")
    yield Line("method.speedup")
    if any(result.speedup_interval for result in report.results):
        yield Line("method.speedup_interval")
    yield from _operations(page)
    if report.published:
        known = "same" if report.gpus else "unknown"
        yield Line(f"method.published_{known}")
    if report.image:
        digest = report.image_digest or page.say("method.no_digest")
        values = {"image": report.image, "digest": digest, "cluster": report.cluster}
        yield Line("method.image", values)
    if report.added_env:
        pairs = (f"{name}={value}" for name, value in sorted(report.added_env.items()))
        yield Line("method.env", {"env": ", ".join(pairs)})


def _repeats(page: Page, method: Method) -> Line:
    often, more = method.repeats, {"order": page.say(f"order.{method.pack}")}
    values: dict[str, str | int | float] = {"iterations": method.iterations, **more}
    if isinstance(often, int):
        return Line("method.repeats", {"repeats": often, **values})
    bounds: dict[str, str | int | float] = {
        "least": often.min,
        "most": often.max,
        "until": often.until_interval,
    }
    return Line("method.until", {**bounds, **values})


def _rule(page: Page) -> Line:
    rule, window = page.report.rule, page.report.window
    if rule == "reported":
        return Line("method.reported")
    if rule is None or window is None:
        return Line("method.by_log")
    first, last = window
    return Line(f"method.{rule}", {"first": first, "last": last, "steps": last - first})


def _operations(page: Page) -> Iterable[Line]:
    if page.report.step_flops:
        yield Line("method.tflops")
        if peaks := page.report.peak_tflops:
            known = {case.precision.upper(): f"{peak:g}" for case, peak in peaks.items()}
            words = ", ".join(f"{peak} ({name})" for name, peak in known.items())
            yield Line("method.peak", {"peaks": words})
