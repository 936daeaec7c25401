"""The program's exceptions, each with its exit code: they say what prevents an answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Which exit code a command ends with where several apply: what may still run counts most, then
# that it was stopped, what this machine lacks, who was not reached, what is unfit, what is missing.
PRECEDENCE = (7, 130, 143, 6, 4, 5, 3, 2, 1, 0)


def joined(codes: Iterable[int]) -> int:
    """Return the exit code that counts among several, by ``PRECEDENCE``; 0 for none."""
    return min(codes, key=PRECEDENCE.index, default=0)


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One problem of a file that a user wrote; line and column count from 1."""

    file: str
    line: int
    column: int
    path: str
    text: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}:"
        return f"{where} {self.path}: {self.text}" if self.path else f"{where} {self.text}"


class DlperfError(Exception):
    """An error that is shown without a traceback.

    Args:
        cause: what was seen and what was needed, in plain words.
        code: what tests and scripts look for, such as ``LOCKED``.
        fix: one thing that the user can do.
        where: node, phase and trial, as far as they are known.
    """

    exit_code = 1
    others: tuple[str, ...] = ()  # further nodes that failed, whose errors are not raised

    def __init__(self, cause: str, *, code: str, fix: str = "", **where: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.code = code
        self.fix = fix
        self.where = where

    def __str__(self) -> str:
        where = "".join(f" {key}={value}" for key, value in self.where.items())
        fix = f" Fix: {_sentence(self.fix)}" if self.fix else ""
        return f"ERROR {self.code}{where}: {_sentence(self.cause)}{fix}"

    def documents(self) -> list[dict[str, object]]:
        """Return its problems for programs: code, message, what to do, and where as an object."""
        problem = {"code": self.code, "message": self.cause, "fix": self.fix}
        return [{**problem, "where": dict(self.where), **self.where}]


def _sentence(text: str) -> str:
    return text if text.endswith(("?", "...")) else f"{text.rstrip('.')}."


class ConfigError(DlperfError):
    """Files that a user wrote do not hold; carries every mistake about them."""

    exit_code = 2

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(sorted(set(mistakes)))
        super().__init__(f"problems in the files given: {len(self.mistakes)}", code="CONFIG")

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)

    def documents(self) -> list[dict[str, object]]:
        return [
            {
                "code": self.code,
                "file": mistake.file,
                "line": mistake.line,
                "column": mistake.column,
                "path": mistake.path,
                "message": mistake.text,
                "fix": "correct the file",
                "where": {"file": mistake.file, "line": mistake.line},
            }
            for mistake in self.mistakes
        ]


class UsageError(DlperfError):
    """The command line asks for something that is not there."""

    exit_code = 2


class NodeError(DlperfError):
    """A node could not be reached or trusted."""

    exit_code = 4


class NodeUnreachable(NodeError):
    """No session with the node; what was started there may still run."""


class CommandTimedOut(NodeError):
    """A command gave no answer in time; it may still be running on the node."""


class UnfitError(DlperfError):
    """Nodes answer but cannot run what was asked; nothing was launched."""

    exit_code = 5


class ImageError(UnfitError):
    """An image is not what the plan needs."""


class StoreError(DlperfError):
    """The state folder is locked, damaged, full or of another version."""

    exit_code = 6


class LocalError(DlperfError):
    """This machine cannot do its part: files, rights, limits."""

    exit_code = 6


class TimeOver(DlperfError):
    """The time that this program was given does not suffice for more; all ended in good order."""

    exit_code = 143


class LeftoverError(DlperfError):
    """It could not be proved that everything we started is gone."""

    exit_code = 7


class LogError(DlperfError):
    """A log cannot be read, or lacks what the window needs."""

    exit_code = 3


_BY = {1: "a closed terminal (SIGHUP)", 2: "Ctrl-C", 15: "SIGTERM"}


class Interrupted(DlperfError):
    """A signal stopped the command; its state is saved and it can go on later."""

    def __init__(self, signal_number: int, job: str = "", less: str = "") -> None:
        """
        Args:
            job: one of Slurm's, which was only followed and goes on.
            less: an option such as ``--new`` with which the same command would not resume.
        """
        by = _BY.get(signal_number, f"signal {signal_number}")
        fix = f"run the same command{less and f' without {less}'} to resume"
        seen = f"stopped by {by}"
        if job:
            seen = f"no longer followed, by {by}: job {job} goes on"
            fix = f"run the same command to follow it again; scancel {job} ends it"
        super().__init__(seen, code="INTERRUPTED", fix=fix)
        self.exit_code = 130 if signal_number == 2 else 143


def gravest(failures: Sequence[DlperfError]) -> DlperfError:
    """Return the error whose exit code counts, by ``PRECEDENCE``; the first of equals."""
    return min(failures, key=lambda failure: PRECEDENCE.index(failure.exit_code))
