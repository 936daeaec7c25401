"""The whole of the command line, and what ends it where no command did."""

import contextlib
import itertools
import os
import re
import signal
import sys
import tempfile
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from orchestrator import __version__, errors
from orchestrator.cli.command import (
    COMMANDS,
    GROUPS,
    Face,
    close_output,
    load,
    refuse_output,
)
from orchestrator.console import Voice
from orchestrator.signals import SIGNALS, Stopped

_OF_THE_PARSER = re.compile("^Invalid value(: | for )|(?<=: )Value error, ")
_HINT = re.compile(r" (Did you mean .*\?)$| \((Possible options: .*)\)$")
# The parent of all that the parser refuses; not every version of typer has a name for it.
_WrongUsage: type[typer.BadParameter] = typer.BadParameter.__bases__[0]


class Group(TyperGroup):
    """Commands that are imported when one of them is called: `--help` answers at once."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        path = f"{self.name} {name}" if self.name in GROUPS else str(name)
        return name, load(path) if path in COMMANDS else command, rest


app = typer.Typer(
    cls=Group,
    help="Run distributed deep-learning benchmarks on a cluster and measure them so that every"
    " number can be traced to the bytes that it came from.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # subcommands inherit it
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Prepare what holds for all commands: files of ours are the user's alone."""
    os.umask(0o077)
    if version:
        typer.echo(f"dlperf-orch {__version__}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


_groups = {name: typer.Typer(cls=Group, help=text) for name, text in GROUPS.items()}
for path, sentence in COMMANDS.items():
    *group, own = path.split()
    (_groups[group[0]] if group else app).command(own, help=sentence)(lambda: None)
for name, one in _groups.items():
    app.add_typer(one, name=name, no_args_is_help=True)


def main() -> None:
    """Run the command line; a fault of ours goes to a file, with one line on the terminal."""
    if sys.stderr is None:  # else its number would be that of the first file opened
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the program ends
    SIGNALS.take()
    try:
        try:
            if sys.stdout is None:
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the program ends
                raise refuse_output("it is closed")
            try:
                code = app(standalone_mode=False)
            except OSError as error:  # of `--help`
                code = close_output(error)
        except Exception as error:  # noqa: BLE001 - a bug may raise anything
            SIGNALS.leave()
            code = _end(_explain(error))
    except Stopped as stopped:  # which may come until `SIGNALS.leave`
        code = _end(stopped)
    finally:
        SIGNALS.ignore()
    SIGNALS.end(code)


def _end(ended: errors.DlperfError | Stopped) -> int:
    """Print what ended the program, and what may still run; return the exit code."""
    face = Face.running
    wants_json = "--json" in itertools.takewhile(lambda word: word != "--", sys.argv[1:])
    voice = face.voice if face else Voice(as_json=wants_json)
    if isinstance(ended, errors.DlperfError):
        error = ended
    elif ended.number == signal.SIGINT and face and face.is_look and not face.as_json:
        return ended.exit_code
    else:
        error = errors.Interrupted(ended.number)
        try:
            if face and face.left:
                face.left()
        except errors.LeftoverError as left:
            error = left
        except errors.DlperfError:  # of what cannot be read nobody knows
            pass
    try:
        voice.error(error)
    except OSError as unheard:  # standard output cannot take the document
        try:
            return close_output(unheard)
        except errors.LocalError as refused:
            return _end(refused)
    return error.exit_code


def _explain(error: Exception) -> errors.DlperfError:
    """Return the error in the form of all errors; one of the parser's as wrong usage."""
    if isinstance(error, errors.DlperfError):
        return error
    Face.running = None  # wrong usage and bugs are JSON only after --json, also those of `inspect`
    if not isinstance(error, _WrongUsage):
        from orchestrator import workloads

        path = _write_traceback(error)
        cause, fix = f"{type(error).__name__}: {error}", f"report it with {path}"
        return workloads.blame(error) or errors.DlperfError(cause, code="BUG", fix=fix)
    command = error.ctx.command_path if error.ctx else "dlperf-orch"
    cause, fix = _OF_THE_PARSER.sub("", error.format_message()), f"see {command} --help"
    if error.ctx and cause == error.ctx.get_help():  # a group without a command
        typer.echo(cause, err=True)
        cause = "Missing command"
    if hint := _HINT.search(cause):
        cause, fix = cause[: hint.start()], (hint[1] or hint[2]).lower()
    return errors.UsageError(cause, code="USAGE", fix=fix)


def _write_traceback(error: Exception) -> str:
    for folder in (os.environ.get("DLPERF_STATE", ".dlperf"), "/tmp"):
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            # A name that nobody can have taken beforehand, by a link for instance.
            handle, path = tempfile.mkstemp(".txt", f"traceback-{os.getpid()}-", folder)
            with open(handle, "w") as file:
                traceback.print_exception(error, file=file)
            return path
    return "the traceback, which could not be written"
