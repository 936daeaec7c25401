"""logs: a trial's raw log, from here or from the node where it is being written."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from orchestrator import errors
from orchestrator.cli.command import Face, command
from orchestrator.cli.options import SWEEPS, WHICH
from orchestrator.console import harmless
from orchestrator.model.attempt import Attempt
from orchestrator.model.sweep import History
from orchestrator.sweeping.observed_sweep import Running

AGAIN_S = 0.5
PIECE_BYTES = 1 << 20


@command("logs", "logs --follow", "logs 2n2g --rank 1")
def logs(
    face: Face,
    trial: Annotated[str | None, typer.Argument(metavar="TRIAL", help="Or how it begins.")] = None,
    sweep_id: Annotated[
        str | None, typer.Option("--sweep", help=WHICH, autocompletion=SWEEPS)
    ] = None,
    attempt: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Default: newest.")
    ] = None,
    rank: Annotated[int, typer.Option(min=0, metavar="N", help="Whose log, by node_rank.")] = 0,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print until it ends.")] = False,
) -> int:
    running = Running.of(face.store, sweep_id)
    chosen = _find_attempt(running, trial, attempt, rank)
    pieces = _read_pieces(running, chosen, rank, follow)
    if face.as_json:
        text = b"".join(pieces).decode(errors="replace")
        where = {"trial": chosen.trial, "attempt": chosen.number, "node_rank": rank}
        return face.voice.finish({**where, "log": text})
    face.is_look = True
    is_terminal = sys.stdout.isatty()
    for piece in pieces:
        if is_terminal:  # which control sequences of a log must not reach
            sys.stdout.write(harmless(piece.decode(errors="replace")))
        else:
            sys.stdout.buffer.write(piece)
        sys.stdout.flush()
    return 0


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

    def is_open() -> bool:
        history = running.sweep.histories().get(attempt.trial, History())
        return attempt.number in history.open

    offset = 0
    if is_open():
        (task,) = (task for task in attempt.tasks if task.node_rank == rank)
        with running.scheduler() as scheduler:
            while True:
                piece = scheduler.read(attempt, task, f"r{rank}.log", offset) or b""
                offset += len(piece)
                yield piece
                if not piece and not (follow and is_open()):
                    break
                if not piece:
                    time.sleep(AGAIN_S)
        if not follow and is_open():
            return
    path = running.sweep.attempt_folder(attempt.trial, attempt.number) / f"r{rank}.log"
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        file.seek(offset)
        while piece := file.read(PIECE_BYTES):
            yield piece
