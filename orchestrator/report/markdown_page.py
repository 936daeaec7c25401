"""One report in one language; escaping and tables of Markdown."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.report import codes, phrases
from orchestrator.report.markup import shown


@dataclass(frozen=True, slots=True)
class Page:
    """One report in one language."""

    report: Report
    language: phrases.Language

    def say(self, key: str, **values: str | int | float) -> str:
        """The text of a key in this page's language; that of processes where no case has GPUs."""
        processes = f"{key}.processes"
        is_other = processes in phrases.TEXTS and not self.has_gpus
        return phrases.text(self.language, processes if is_other else key, **values)

    @property
    def has_gpus(self) -> bool:
        """Whether any case is one of GPUs; not known of logs that belong to none."""
        devices = {result.case.device for result in self.report.results}
        return devices != {"cpu"}

    def say_or(self, key: str, otherwise: str) -> str:
        """The text of a key, or ``otherwise`` where there is no such key."""
        return phrases.text_or(self.language, key, otherwise)

    def codes(self, problems: Iterable[Problem]) -> str:
        """The codes of problems or marks, each once, explained in this page's language."""
        return " ".join(
            codes.explained(self.language, code)
            for code in dict.fromkeys(problem.code for problem in problems)
        )

    def reason(self, where: str, problem: Problem) -> str:
        """One line of a list: where, the code, and the message as it was."""
        parts = (where, self.codes([problem]), escaped(problem.message))
        return f"- {self.say('colon').join(parts)}"

    def heads(self, *keys: str) -> tuple[str, ...]:
        """Heads of columns."""
        return tuple(self.say(f"head.{key}") for key in keys)

    def heading(self, key: str) -> str:
        """The heading of a section."""
        return f"## {self.say(key)}"


def plain(text: str) -> str:
    """The text on one line, without control characters or such that turn text around."""
    return shown(text)


def escaped(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    return re.sub(
        r"([\\`*_\[\]|])", r"\\\1", plain(text).replace("&", "&amp;").replace("<", "&lt;")
    )


def code(text: str) -> str:
    """Text as code: a fence longer than any in it, and none of it is obeyed."""
    line = plain(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if len(fence) > 1 else f"`{line}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; underscores in heads stay, as inside of words they mean nothing."""
    heads = [escaped(title).replace("\\_", "_") for title in head]
    lines = [heads, ["---"] * len(heads), *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
