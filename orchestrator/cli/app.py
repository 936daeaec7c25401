"""The whole of the command line, and what ends it where no command did."""

import itertools
import os
import re
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from orchestrator import __version__, errors
from orchestrator.cli.command import (
    COMMANDS,
    GROUPS,
    close_output,
    load,
    refuse_output,
    stopped_code,
)
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
    SIGNALS.take()
    try:
        if sys.stdout is None:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the program ends
            raise refuse_output("it is closed")
        try:
            SIGNALS.end(app(standalone_mode=False))
        except OSError as error:  # of `--help`
            sys.exit(close_output(error))
    except errors.LocalError as error:
        _end(error)
    except Stopped as stopped:
        from orchestrator.console import Voice

        sys.exit(stopped_code(stopped, Voice(as_json=_wants_json()), None))
    except _WrongUsage as error:
        _refuse_usage(error)
    except Exception as error:  # noqa: BLE001 - a bug may raise anything; its traceback goes to a file
        from orchestrator import workloads

        path = _write_traceback(error)
        cause, fix = f"{type(error).__name__}: {error}", f"report it with {path}"
        bug = workloads.blame(error) or errors.DlperfError(cause, code="BUG", fix=fix)
        _end(bug)
    finally:
        SIGNALS.ignore()


def _refuse_usage(error: typer.BadParameter) -> None:
    """End with the exit code of wrong usage, told in the form of all errors, and as JSON too."""
    command = error.ctx.command_path if error.ctx else "dlperf-orch"
    cause, fix = _OF_THE_PARSER.sub("", error.format_message()), f"see {command} --help"
    if error.ctx and cause == error.ctx.get_help():  # a group without a command
        typer.echo(cause, err=True)
        cause = "Missing command"
    if hint := _HINT.search(cause):
        cause, fix = cause[: hint.start()], (hint[1] or hint[2]).lower()
    _end(errors.UsageError(cause, code="USAGE", fix=fix))


def _end(error: errors.DlperfError) -> NoReturn:
    from orchestrator.console import Voice

    Voice(as_json=_wants_json()).error(error)
    sys.exit(error.exit_code)


def _wants_json() -> bool:
    return "--json" in itertools.takewhile(lambda word: word != "--", sys.argv[1:])


def _write_traceback(error: Exception) -> str:
    text = "".join(traceback.format_exception(error))
    for folder in (Path(os.environ.get("DLPERF_STATE", ".dlperf")), Path("/tmp")):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # A name that nobody can have taken beforehand, by a link for instance.
            handle, path = tempfile.mkstemp(".txt", f"traceback-{os.getpid()}-", folder)
            with open(handle, "w") as file:
                file.write(text)
        except OSError:
            continue
        return path
    return "the traceback, which could not be written"
