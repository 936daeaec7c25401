"""The method section: how the numbers were measured."""

from collections.abc import Iterable, Mapping

from orchestrator.model.experiment import Method
from orchestrator.report.page import Page
from orchestrator.report.tree import Span, Words

Values = Mapping[str, str | int | float]


def with_code(page: Page, key: str, values: Values) -> Words:
    """Return the text of a key, in which words in backquotes are code; values may have some too."""
    shown = {
        name: it.replace("`", "\0") if isinstance(it, str) else it for name, it in values.items()
    }
    parts = [part.replace("\0", "`") for part in page.say(key, **shown).split("`")]
    return [Span(part, look="code") if n % 2 else part for n, part in enumerate(parts)]


def lines(page: Page) -> Iterable[Words]:
    """Yield a line for each thing that a reader needs to repeat the measurement."""
    return (with_code(page, key, values) for key, values in _lines(page))


def _lines(page: Page) -> Iterable[tuple[str, Values]]:
    """Yield the key of each text, and what stands in it."""
    report = page.report
    yield ("method.source", {"workload": report.workload, "source": report.source})
    if report.method is not None:
        yield _repeats(page, report.method)
    yield _rule(page)
    yield "method.median", {}
    if report.layout.kind == "groups":
        yield "method.latency_memory", {}
    yield "method.speedup", {}
    if any(result.speedup_interval for result in report.results):
        yield "method.speedup_interval", {}
    yield from _operations(page)
    if report.published:
        known = "same" if report.gpus else "unknown"
        yield f"method.published_{known}", {}
    if report.image:
        digest = report.image_digest or page.say("method.no_digest")
        values = {"image": report.image, "digest": digest, "cluster": report.cluster}
        yield ("method.image", values)
    if report.added_env:
        pairs = (f"{name}={value}" for name, value in sorted(report.added_env.items()))
        yield ("method.env", {"env": ", ".join(pairs)})


def _repeats(page: Page, method: Method) -> tuple[str, Values]:
    often, more = method.repeats, {"order": page.say(f"order.{method.pack}")}
    values: dict[str, str | int | float] = {"iterations": method.iterations, **more}
    if isinstance(often, int):
        return ("method.repeats", {"repeats": often, **values})
    bounds: dict[str, str | int | float] = {
        "least": often.min,
        "most": often.max,
        "until": often.until_interval,
    }
    return ("method.until", {**bounds, **values})


def _rule(page: Page) -> tuple[str, Values]:
    rule, window = page.report.rule, page.report.window
    if rule == "reported":
        return "method.reported", {}
    if rule is None or window is None:
        return "method.by_log", {}
    first, last = window
    return (f"method.{rule}", {"first": first, "last": last, "steps": last - first})


def _operations(page: Page) -> Iterable[tuple[str, Values]]:
    if page.report.step_flops:
        yield "method.tflops", {}
        if peaks := page.report.peak_tflops:
            known = {case.precision.upper(): f"{peak:g}" for case, peak in peaks.items()}
            words = ", ".join(f"{peak} ({name})" for name, peak in known.items())
            yield ("method.peak", {"peaks": words})
