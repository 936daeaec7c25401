"""Problems of a log as they turn up."""

from orchestrator.model.problem import Problem


class Notes:
    """The first problem of every sort, and how many there are."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, code: str, text: str, *, sort: str = "", times: int = 1) -> None:
        """Take one more problem; within a code, ``sort`` tells apart what is counted apart."""
        count, first = self._seen.get((code, sort), (0, text))
        self._seen[code, sort] = (count + times, first)

    def problems(self) -> tuple[Problem, ...]:
        """The first of every sort, in the order in which they turned up."""
        return tuple(
            Problem(code, first if count == 1 else f"{first} (the first of {count})")
            for (code, _), (count, first) in self._seen.items()
        )
