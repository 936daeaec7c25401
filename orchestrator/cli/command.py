"""Shared by all commands: --json, --state and --verbose, errors, and signals."""

import functools
import inspect
import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from orchestrator import errors
from orchestrator.cli import examples
from orchestrator.cli.options import DEFAULT_STATE, AlwaysJson, Json, State, Verbose
from orchestrator.signals import SIGNALS, Stopped

if TYPE_CHECKING:  # what commands need is imported when one runs: `--help` answers at once
    from orchestrator.console import Voice
    from orchestrator.state.store import Store

Made = TypeVar("Made", bound=Callable[..., Any])
LeftoverCheck = Callable[[], None]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def quote_command() -> str:
    """Return the command line of this program, as a shell would take it again."""
    return shlex.join(("dlperf-orch", *sys.argv[1:]))


@dataclass
class Face:
    """The options that every command has, and its output.

    Args:
        logged: whether remote commands are written to the debug log.
    """

    as_json: bool
    state: Path
    verbose: bool
    logged: bool

    @cached_property
    def voice(self) -> "Voice":
        from orchestrator.console import Voice

        return Voice(as_json=self.as_json)

    @property
    def store(self) -> "Store":
        from orchestrator.state.store import Store

        return Store(self.state)

    def run(self, work: Callable[[], int], left: LeftoverCheck | None = None) -> NoReturn:
        """Run a command's work, print its error, and exit with its code.

        Args:
            left: called after a signal; raises LeftoverError for tasks that may still run.
        """
        try:
            code = self._run(work)
        except Stopped as stopped:
            code = stopped_code(stopped, self.as_json, left)
        raise typer.Exit(code)

    def _run(self, work: Callable[[], int]) -> int:
        voice = self.voice
        try:
            SIGNALS.begin()
            if self.logged:
                from orchestrator.cli import debug_log

                debug_log.begin(self.state, voice.line if self.verbose else None)
            code = work()
            sys.stdout.flush()
            SIGNALS.leave()
        except errors.DlperfError as error:
            SIGNALS.leave()
            voice.error(error)
            code = error.exit_code
        except OSError as error:
            if not voice.is_unheard(error):
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 141
        finally:
            voice.rested()
        return code


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    has_state: bool = True,
    nodes: bool = False,
    json_only: bool = False,
    runs_itself: bool = False,
) -> Callable[[Made], Made]:
    """Make a command of a function that is given a ``Face`` and its own options.

    Args:
        has_state: whether it knows a state folder (``--state``).
        nodes: whether it may reach nodes: it has a debug log, and ``--verbose``.
        json_only: its only output is JSON.
        runs_itself: it calls ``Face.run`` itself.
    """
    more = [_option("as_json", False, AlwaysJson if json_only else Json)]
    more += [_option("state", DEFAULT_STATE, State)] if has_state else []
    more += [_option("verbose", False, Verbose)] if nodes else []

    def decorated(body: Made) -> Made:
        def called(
            as_json: bool = False, state: Path = DEFAULT_STATE, verbose: bool = False, **own: Any
        ) -> None:
            face = Face(as_json or json_only, state, verbose, logged=nodes)
            if runs_itself:
                body(face, **own)
            face.run(lambda: body(face, **own))

        _sign(called, body, more)
        app.command(name, epilog=examples.epilog(body.__name__))(called)
        return body

    return decorated


def run_look(face: Face, look: Callable[[], int]) -> int:
    """Run a look that only Ctrl-C ends, which then is no error; its exit code."""
    try:
        return look()
    except Stopped as stopped:
        if face.voice.as_json or stopped.number != signal.SIGINT:
            raise
        return stopped.exit_code


def stopped_code(stopped: Stopped, as_json: bool, left: LeftoverCheck | None) -> int:
    """Print that a command was stopped, and what may still run; its exit code."""
    from orchestrator.console import Voice

    reported: errors.DlperfError = errors.Interrupted(stopped.number)
    try:
        if left:
            left()
    except errors.LeftoverError as error:
        reported = error
    except errors.DlperfError:  # of what cannot be read nobody knows
        pass
    Voice(as_json=as_json).error(reported)
    return reported.exit_code


def _option(name: str, default: object, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, _KEYWORD, default=default, annotation=annotation)


def _sign(
    called: Callable[..., None], body: Callable[..., Any], more: list[inspect.Parameter]
) -> None:
    """Give ``called`` the signature of ``body`` without its first parameter, and with ``more``."""
    _, *own = inspect.signature(body, eval_str=True).parameters.values()
    functools.update_wrapper(called, body, assigned=("__module__", "__name__", "__doc__"))
    del called.__dict__["__wrapped__"]
    parameters = [*(parameter.replace(kind=_KEYWORD) for parameter in own), *more]
    called.__dict__["__signature__"] = inspect.Signature(parameters)
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
