"""The names of all commands, and what they share: --json, --state, -v and the debug log."""

import errno
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import typer
from typer.core import TyperCommand
from typer.main import get_command

from orchestrator import errors
from orchestrator.cli import debug_log
from orchestrator.cli.options import DEFAULT_STATE, Json, State, Verbose
from orchestrator.console import Voice
from orchestrator.signals import SIGNALS

if TYPE_CHECKING:  # loaded when a command runs: `--help` answers at once
    from orchestrator.state.store import Store

COMMANDS: Mapping[str, str] = {
    "init": "Ask machines what they have, and write an inventory of them.",
    "provision": "Prepare images on nodes, and check that they are fit.",
    "sweep": "Run every trial that has no valid outcome yet, then collect.",
    "status": "Show what a sweep has done and what of it runs where.",
    "logs": "Print a trial's raw log. Default: the trial that runs, else the last one.",
    "stop": "End a sweep and everything that it started. Nothing else is ended.",
    "collect": "Turn logs into medians, speedups, tables and reports.",
    "archive": "Write a sweep with all its logs and records into one file.",
    "verify": "Derive every number again from raw logs. What differs is named.",
    "explain": "Show how a case's number came to be. Trials, log lines, formula, nodes, command.",
    "compare": "Compare two sweeps. Different, the same, or too few trials to tell.",
    "clean": "Remove what finished sweeps left on nodes. Only those of this state folder.",
    "trust": "Show nodes' host keys, and trust them after a yes. They are added to known_hosts.",
    "bundle": "Write images and downloads into a folder. `provision --bundle` takes them.",
    "published": "List published results of these benchmarks, with their sources.",
    "check": "Check inventories, playbooks and image files. Nothing is reached or changed.",
    "schema": "Print the JSON Schema of a kind of file, for editors.",
    "list": "List what is here and what is shipped.",
    "data check": "Check that a data set is complete and the same on every node.",
    "data prepare": "Prepare a data set on nodes that lack it. Nothing is overwritten.",
    "inspect topology": "Read `nvidia-smi topo -m`.",
    "inspect ibstat": "Read `ibstat`.",
    "inspect gpu": "Read `nvidia-smi -q -x`.",
    "inspect log": "Read a training log.",
}
GROUPS: Mapping[str, str] = {
    "data": "Check data sets on the nodes, and prepare them there.",
    "inspect": "Parse a recorded output, and print it as JSON.",
}
Made = TypeVar("Made", bound=Callable[..., Any])
_MODULES = {"list": "list_", "schema": "check"}
_ON_TERMINAL = sys.stdout is not None and sys.stdout.isatty()
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)
_loaded: dict[str, "_Command"] = {}


def quote_command() -> str:
    """Return the command line of this program, as a shell would take it again."""
    return shlex.join(("dlperf-orch", *sys.argv[1:]))


class Face(typer.Context):
    """The context of a command: the options that every command has, and its output.

    Attributes:
        running: the command of this process; None before its options are parsed.
        is_look: True if only Ctrl-C ends it, which then is no error.
        left: called after a signal; raises LeftoverError for tasks that may still run.
    """

    running: ClassVar["Face | None"] = None
    as_json = False
    state: Path = DEFAULT_STATE
    verbose = False
    is_look = False
    left: Callable[[], None] | None = None

    @cached_property
    def voice(self) -> Voice:
        return Voice(as_json=self.as_json)

    @property
    def store(self) -> "Store":
        from orchestrator.state.store import Store

        return Store(self.state)


class _Command(TyperCommand):
    context_class = Face
    json_only = False
    left: "Callable[[Store], None] | None" = None

    def invoke(self, ctx: Any) -> NoReturn:
        for name in ("as_json", "state", "verbose"):
            setattr(ctx, name, ctx.params.pop(name))
        ctx.as_json |= self.json_only
        ctx.left = self.left and partial(self.left, ctx.store)
        Face.running = ctx
        SIGNALS.begin()
        debug_log.begin(ctx.state, ctx.voice.line if ctx.verbose else None)
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            SIGNALS.leave()
        except OSError as error:  # else click ends the program
            code = close_output(error)
        raise typer.Exit(code)


def command(
    name: str,
    *examples: str,
    json_only: bool = False,
    left: "Callable[[Store], None] | None" = None,
) -> Callable[[Made], Made]:
    """Make a command of a function that takes a ``Face`` and its own options.

    After a signal, also one that came before the command began, ``left`` is called.
    """

    def decorated(body: Made) -> Made:
        made = _build(body, name, examples)
        made.json_only, made.left = json_only, left
        made.params += _build(_common, name, ()).params
        _loaded[name] = made
        return body

    return decorated


def load(name: str) -> TyperCommand:
    first = name.split()[0]
    import_module(f"orchestrator.verbs.{_MODULES.get(first, first)}")
    return _loaded[name]


def close_output(error: OSError) -> int:
    """Return the exit code after standard output has lost its reader or its terminal.

    Raises:
        LocalError: STDOUT; it cannot be written.
        OSError: it is another failure.
    """
    hung_up = error.errno == errno.EIO and _ON_TERMINAL and not sys.stdout.isatty()
    unheard = isinstance(error, BrokenPipeError) or hung_up
    if not unheard and (error.errno not in _FULL or error.filename):
        raise error
    # What is still buffered would fail again at the end of the interpreter.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if unheard:
        return 141
    raise refuse_output(str(error.strerror)) from error


def refuse_output(why: str) -> errors.LocalError:
    return errors.LocalError(
        f"standard output cannot be written: {why}",
        code="STDOUT",
        fix="write it elsewhere; what the command did otherwise is done",
    )


def _common(as_json: Json = False, state: State = DEFAULT_STATE, verbose: Verbose = False) -> None:
    """Take the options of every command."""


def _build(function: Callable[..., Any], name: str, examples: Sequence[str]) -> _Command:
    head = "Examples:" if len(examples) > 1 else "Example:"
    # After \b lines are not wrapped: a shell has to take an example as it is shown.
    epilog = "\n".join(("\b", head, *(f"  dlperf-orch {line}" for line in examples)))
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name.split()[-1], cls=_Command, help=COMMANDS[name], epilog=epilog)(function)
    made = get_command(app)
    assert isinstance(made, _Command)
    return made
