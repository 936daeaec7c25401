"""Shared by all commands: --json, --state and --verbose, errors, and signals."""

import os
import shlex
import signal
import sys
from collections.abc import Callable
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer
from typer.core import TyperCommand
from typer.main import get_command

from orchestrator import errors
from orchestrator.cli.commands import COMMANDS
from orchestrator.cli.options import DEFAULT_STATE, Json, State, Verbose
from orchestrator.signals import SIGNALS, Stopped

if TYPE_CHECKING:  # loaded when a command runs: `--help` answers at once
    from orchestrator.console import Voice
    from orchestrator.state.store import Store

Made = TypeVar("Made", bound=Callable[..., Any])
LeftoverCheck = Callable[[], None]
_MODULES = {"list": "list_", "schema": "check"}
_loaded: dict[str, "_Command"] = {}


def quote_command() -> str:
    """Return the command line of this program, as a shell would take it again."""
    return shlex.join(("dlperf-orch", *sys.argv[1:]))


class Face(typer.Context):
    """The context of a command: the options that every command has, and its output.

    Attributes:
        logs_nodes: True if remote commands are written to the debug log.
        is_look: True if only Ctrl-C ends it, which then is no error.
        left: called after a signal; raises LeftoverError for tasks that may still run.
    """

    as_json = False
    state: Path = DEFAULT_STATE
    verbose = False
    logs_nodes = is_look = False
    left: LeftoverCheck | None = None

    @cached_property
    def voice(self) -> "Voice":
        from orchestrator.console import Voice

        return Voice(as_json=self.as_json)

    @property
    def store(self) -> "Store":
        from orchestrator.state.store import Store

        return Store(self.state)

    def run(self, work: Callable[[], int]) -> int:
        """Run a command's work and print its error; return its exit code."""
        try:
            return self._run(work)
        except Stopped as stopped:
            if self.is_look and not self.as_json and stopped.number == signal.SIGINT:
                return stopped.exit_code
            return stopped_code(stopped, self.as_json, self.left)

    def _run(self, work: Callable[[], int]) -> int:
        voice = self.voice
        try:
            SIGNALS.begin()
            if self.logs_nodes:
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
        return code


class _Command(TyperCommand):
    context_class = Face
    json_only = False

    def invoke(self, ctx: Any) -> NoReturn:
        ctx.as_json = ctx.params.pop("as_json") or self.json_only
        ctx.state = ctx.params.pop("state", DEFAULT_STATE)
        ctx.logs_nodes = "verbose" in ctx.params
        ctx.verbose = ctx.params.pop("verbose", False)
        raise typer.Exit(ctx.run(partial(super().invoke, ctx)))


def command(
    name: str, *, has_state: bool = True, nodes: bool = False, json_only: bool = False
) -> Callable[[Made], Made]:
    """Make a command of a function that takes a ``Face`` and its own options.

    Args:
        has_state: it has a state folder (``--state``).
        nodes: it may reach nodes: it has a debug log, and ``--verbose``.
        json_only: its only output is JSON.
    """
    own = {"as_json": True, "state": has_state, "verbose": nodes}

    def decorated(body: Made) -> Made:
        made = _build(body, name)
        made.json_only = json_only
        made.params += [param for param in _build(_common, name).params if own[str(param.name)]]
        _loaded[name] = made
        return body

    return decorated


def load(name: str) -> TyperCommand:
    """Return a command; its module is imported now."""
    first = name.split()[0]
    import_module(f"orchestrator.verbs.{_MODULES.get(first, first)}")
    return _loaded[name]


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


def _common(as_json: Json = False, state: State = DEFAULT_STATE, verbose: Verbose = False) -> None:
    """Take the options of every command."""


def _build(function: Callable[..., Any], name: str) -> _Command:
    sentence, *examples = COMMANDS[name]
    head = "Examples:" if len(examples) > 1 else "Example:"
    # After \b lines are not wrapped: a shell has to take an example as it is shown.
    epilog = "\n".join(("\b", head, *(f"  dlperf-orch {line}" for line in examples)))
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name.split()[-1], cls=_Command, help=sentence, epilog=epilog)(function)
    made = get_command(app)
    assert isinstance(made, _Command)
    return made
