"""One report in one language: what every table, figure and sentence of it takes its words from."""
# ruff: noqa: RUF001 - Chinese has punctuation of its own

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.report import phrases


@dataclass(frozen=True, slots=True)
class Page:
    report: Report
    language: phrases.Language

    def text(self, english: str, chinese: str) -> str:
        return english if self.language == "en" else chinese

    def word(self, word: str) -> str:
        """Return a state, a rule, or the name of a fact in the language of the page."""
        return self.text(word, phrases.WORDS.get(word, word))

    def explain(self, code: str) -> str:
        """Return a code, with its meaning in parentheses if the code is known."""
        meaning = self.text(*phrases.MEANINGS.get(code, ("", "")))
        return self.text(f"{code} ({meaning})", f"{code}（{meaning}）") if meaning else code

    @property
    def has_gpus(self) -> bool:
        """Return True if any case runs on GPUs, or if there is no case to ask."""
        devices = {result.case.device for result in self.report.results}
        return devices != {"cpu"}

    @property
    def gpus(self) -> str:
        """Return the word for what the cases run on."""
        return self.text("GPUs", " GPU 数") if self.has_gpus else self.text("processes", "进程数")

    def listed(self, parts: Iterable[str]) -> str:
        return self.text(", ", "，").join(parts)

    def with_colons(self, *parts: str) -> str:
        """Join words, each of which explains the one before it."""
        return self.text(": ", "：").join(parts)

    def reasons(self, problems: Iterable[Problem]) -> str:
        """Return problems or marks as they were seen, below their codes."""
        by_code: dict[str, list[str]] = {}
        for problem in problems:
            by_code.setdefault(self.explain(problem.code), []).append(problem.message)
        semicolon = self.text("; ", "；")
        return semicolon.join(
            self.with_colons(code, semicolon.join(seen)) for code, seen in by_code.items()
        )

    def heads(self, *keys: str) -> tuple[str, ...]:
        heads = (phrases.HEADS.get(key) or (key, phrases.WORDS[key]) for key in keys)
        return tuple(self.text(*head).format(gpus=self.gpus) for head in heads)
