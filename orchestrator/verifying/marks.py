"""What a reader should know of a number that counts, and whether a message says just that."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.verifying.differences import Findings, items, text

LOOKED_FOR = frozenset(
    {
        *("COARSE-CLOCK", "GAP", "STATE-CHANGED", "THROTTLED", "ALIEN-PROCESS", "CPU-LOADED"),
        *("OUTLIER", "WIDE-SPREAD", "NODE-SETS", "BESIDE", "UNSETTLED", "DRIFT"),
        *("BASELINE-DIFFERS", "IMPLAUSIBLE", "SLOW-NODE"),
    }
)
"""Codes that this reader derives itself."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A code, and what its message must say.

    Args:
        facts: names and numbers as they are printed, in this order; no other number may stand
            there.
    """

    code: str
    facts: tuple[str, ...]

    def is_said_by(self, message: str) -> bool:
        """Whether a message has all facts, and no number beside them."""
        for fact in filter(None, self.facts):
            before, found, message = message.partition(fact)
            if not found or _has_digit(before):
                return False
        return not _has_digit(message)


def _has_digit(message: str) -> bool:
    return any(letter.isdigit() for letter in message)


def compare(
    findings: Findings, file: str, place: str, written: object, derived: Sequence[Mark]
) -> None:
    """Compare a list of marks with the derived ones; those of other codes are not judged."""
    left = list(derived)
    for at, mark in enumerate(items(written)):
        code, message = text(mark.get("code")), text(mark.get("message"))
        if code not in LOOKED_FOR or "TFLOP/s" in message:  # operations are not of a log
            continue
        findings.numbers += 1
        own = [it for it in left if it.code == code]
        fitting = [it for it in own if it.is_said_by(message)]
        if fitting:
            left.remove(fitting[0])
            continue
        if own:
            left.remove(own[0])
        facts = ", ".join(own[0].facts) if own else f"no {code}"
        findings.differs(file, f"{place}[{at}]", f"{code}: {message}", facts)
    for lacking in left:
        words = f"{lacking.code}: {', '.join(lacking.facts)}"
        findings.differs(file, place, f"no {lacking.code}", words)


def codes(marks: Iterable[Mark]) -> list[str]:
    """Of each, in their order."""
    return [mark.code for mark in marks]
