"""logs: a trial's raw log, from here or from the node where it is being written."""

import re
import sys
import time
from collections.abc import Iterable, Iterator

from orchestrator import errors
from orchestrator.console import Voice, harmless
from orchestrator.model.attempt import Attempt
from orchestrator.model.sweep import History
from orchestrator.sweeping.observed_sweep import Running

AGAIN_S = 0.5
PIECE_BYTES = 1 << 20


def logs(
    running: Running,
    trial: str | None,
    number: int | None,
    rank: int,
    voice: Voice,
    *,
    grep: str | None,
    follow: bool,
) -> int:
    """Print a raw log, and with ``follow`` what is added until its attempt ends; exit code.

    Args:
        trial: its name or the beginning of it; None for the trial that runs, else the last one.
        number: of the attempt; None for the last one.
        grep: a regular expression; only lines that it fits are printed.

    Raises:
        UsageError: NO-PATTERN, NO-TRIAL or NO-LOG.
    """
    try:
        pattern = None if grep is None else re.compile(grep.encode())
    except re.error as error:
        raise errors.UsageError(
            f"{grep!r} is no regular expression: {error}",
            code="NO-PATTERN",
            fix="quote it for your shell; signs such as ( and [ need a backslash before them",
        ) from error
    attempt = _find_attempt(running, trial, number, rank)
    pieces = _read_pieces(running, attempt, rank, follow)
    if pattern is not None:
        pieces = _filter_lines(pieces, pattern)
    if voice.as_json:
        text = b"".join(pieces).decode(errors="replace")
        where = {"trial": attempt.trial, "attempt": attempt.number, "node_rank": rank}
        return voice.finish({**where, "log": text})
    is_terminal, written = sys.stdout.isatty(), 0
    for piece in pieces:
        if is_terminal:  # which control sequences of a log must not reach
            sys.stdout.write(harmless(piece.decode(errors="replace")))
        else:
            sys.stdout.buffer.write(piece)
        sys.stdout.flush()
        written += len(piece)
    if pattern is not None and not written:
        whose = f"{attempt.trial} a{attempt.number}, rank {rank}"
        voice.line(f"no line of the log of {whose} fits {grep!r}")
    return 0


def _filter_lines(pieces: Iterable[bytes], pattern: re.Pattern[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield b"".join(line + b"\n" for line in lines if pattern.search(line))
    if rest and pattern.search(rest):
        yield rest


def _find_attempt(running: Running, name: str | None, number: int | None, rank: int) -> Attempt:
    histories = running.sweep.histories()
    begun = [
        trial for trial in running.plan.trials if histories.get(trial.name, History()).attempts
    ]
    chosen = [trial for trial in begun if trial.name == name] or [
        trial for trial in begun if trial.name.startswith(name or "")
    ]
    if not chosen:
        names = ", ".join(trial.name for trial in begun) or "none"
        raise errors.UsageError(
            f"no trial {name or ''} of sweep {running.sweep.id} has begun",
            code="NO-TRIAL",
            fix=f"begun are {names}",
        )
    trial = next((trial for trial in chosen if histories[trial.name].open), chosen[-1])
    most = histories[trial.name].attempts
    number = number or most
    if number > most or rank >= trial.case.nodes:
        raise errors.UsageError(
            f"trial {trial.name} has {most} attempts and {trial.case.nodes} node ranks",
            code="NO-LOG",
            fix="ask for one of them",
        )
    return running.sweep.attempt(trial.name, number)


def _read_pieces(running: Running, attempt: Attempt, rank: int, follow: bool) -> Iterator[bytes]:
    """Read the log in pieces: from its node, and from the copy here once the attempt has ended."""
    offset = 0
    while _is_open(running, attempt):
        with running.scheduler() as scheduler:
            task = next(task for task in attempt.tasks if task.node_rank == rank)
            while True:
                piece = scheduler.read(attempt, task, f"r{rank}.log", offset) or b""
                offset += len(piece)
                yield piece
                if not piece and not (follow and _is_open(running, attempt)):
                    break
                if not piece:
                    time.sleep(AGAIN_S)
        if not follow and _is_open(running, attempt):
            return
    path = running.sweep.attempt_folder(attempt.trial, attempt.number) / f"r{rank}.log"
    if not path.exists():
        return
    with open(path, "rb") as file:
        file.seek(offset)
        while piece := file.read(PIECE_BYTES):
            yield piece


def _is_open(running: Running, attempt: Attempt) -> bool:
    history = running.sweep.histories().get(attempt.trial, History())
    return attempt.number in history.open
