"""One report in one language: what every table, figure and sentence of it takes its words from."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.model.problem import Problem
from orchestrator.model.report import Report
from orchestrator.report import codes, phrases


@dataclass(frozen=True, slots=True)
class Page:
    """One report in one language."""

    report: Report
    language: phrases.Language

    def say(self, key: str, **values: str | int | float) -> str:
        """Return the text of a key, with processes instead of GPUs if no case has GPUs."""
        processes = f"{key}.processes"
        is_other = processes in phrases.TEXTS and not self.has_gpus
        return phrases.text(self.language, processes if is_other else key, **values)

    @property
    def has_gpus(self) -> bool:
        """Return True if any case runs on GPUs, or if there is no case to ask."""
        devices = {result.case.device for result in self.report.results}
        return devices != {"cpu"}

    def say_or(self, key: str, otherwise: str) -> str:
        """Return the text of a key, or ``otherwise`` if there is no such key."""
        return phrases.text_or(self.language, key, otherwise)

    def listed(self, parts: Iterable[str]) -> str:
        """Join names as this language does."""
        return self.say("comma").join(parts)

    def codes(self, problems: Iterable[Problem]) -> str:
        """Return the codes of problems or marks, each once, with their meanings."""
        every = dict.fromkeys(problem.code for problem in problems)
        between = (
            ", " if self.language == "en" else " "
        )  # Chinese brackets end a code by themselves
        return between.join(codes.explained(self.language, code) for code in every)

    def heads(self, *keys: str) -> tuple[str, ...]:
        """Return heads of columns."""
        return tuple(self.say(f"head.{key}") for key in keys)
