"""The command line: arguments, exit codes, and nothing else."""

import itertools
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from orchestrator import __version__, errors
from orchestrator.model.log import Rule
from orchestrator.signals import SIGNALS, Stopped

if TYPE_CHECKING:  # what commands need is imported when one runs: `--help` answers at once
    from orchestrator import shipped
    from orchestrator.console import Voice
    from orchestrator.store import Store, Sweep

app = typer.Typer(
    name="dlperf-orch",
    help="Run distributed deep-learning benchmarks on a cluster and measure them so that every"
    " number can be traced to the bytes that it came from.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # subcommands inherit it
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
inspecting = typer.Typer(
    help="What our parsers make of a recorded output, as JSON.", no_args_is_help=True
)
app.add_typer(inspecting, name="inspect", rich_help_panel=None)
data_sets = typer.Typer(
    help="Data sets on the nodes: are they there, whole and alike? Bring them there.",
    no_args_is_help=True,
)
app.add_typer(data_sets, name="data", rich_help_panel=None)


def _complete_shipped(kind: "shipped.Kind") -> Callable[[], list[str]]:
    def names() -> list[str]:
        from orchestrator.verbs import complete

        return complete.shipped_names(kind)

    return names


def _complete_workloads() -> list[str]:
    from orchestrator.verbs import complete

    return complete.workload_names()


def _complete_sweeps(context: typer.Context) -> list[str]:
    from orchestrator.verbs import complete

    return complete.sweep_names(_store(context.params.get("state") or DEFAULT_STATE))


def _complete_cases(context: typer.Context, incomplete: str) -> list[str]:
    from orchestrator.verbs import complete

    # Before a value that is still missing the parser leaves positional words where they were.
    playbook = context.params.get("playbook") or next(iter(context.args), None)
    return complete.case_names(playbook, incomplete)


WHICH = "A sweep's id or its beginning, its folder, or a playbook's name; else the newest."
PLAYBOOKS, INVENTORIES = _complete_shipped("playbooks"), _complete_shipped("inventory")
IMAGES = _complete_shipped("images")


def _folder(named: str | Path) -> Path:
    if not str(named):  # which Path takes for the working folder
        raise typer.BadParameter("nothing; needed a folder, such as .dlperf")
    return Path(named)


State = Annotated[
    Path,
    typer.Option(
        "--state",
        envvar="DLPERF_STATE",
        metavar="PATH",
        parser=_folder,
        help="Folder that holds everything.",
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show what is also written to the debug log.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
FileOrDash = Annotated[str, typer.Argument(metavar="FILE|-")]
AlwaysJson = Annotated[bool, typer.Option("--json", help="As without it: what it prints is JSON.")]
DEFAULT_STATE = Path(".dlperf")
_WHOLE = re.compile(r"[0-9]{1,9}")
# The parent of all that the parser refuses; not every version of typer has a name for it.
_WrongUsage: type[typer.BadParameter] = typer.BadParameter.__bases__[0]


def _command(
    as_json: bool, work: Callable[["Voice"], int], left: Callable[[], None] | None = None
) -> NoReturn:
    """Run a command's work, show what stops it, and end with its exit code.

    Args:
        left: asked when it is stopped; raises LeftoverError for what may still run.
    """
    try:
        code = _worked(as_json, work)
    except Stopped as stopped:
        code = _stopped(stopped, as_json, left)
    raise typer.Exit(code)


def _worked(as_json: bool, work: Callable[["Voice"], int]) -> int:
    from orchestrator.console import Voice

    voice = Voice(as_json=as_json)
    try:
        SIGNALS.begin()
        code = work(voice)
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


def _stopped(stopped: Stopped, as_json: bool, left: Callable[[], None] | None) -> int:
    """Say that a command was stopped, and what may still run; its exit code."""
    from orchestrator.console import Voice

    said: errors.DlperfError = errors.Interrupted(stopped.number)
    try:
        if left:
            left()
    except errors.LeftoverError as error:
        said = error
    except errors.DlperfError:  # of what cannot be read nobody knows
        pass
    Voice(as_json=as_json).error(said)
    return said.exit_code


def _on_nodes(as_json: bool, state: Path, verbose: bool, work: Callable[["Voice"], int]) -> None:
    """Run a command that may reach nodes: what it does there is in the debug log."""
    _command(as_json, _logged(state, verbose, work))


def _logged(state: Path, verbose: bool, work: Callable[["Voice"], int]) -> Callable[["Voice"], int]:
    def logged(voice: "Voice") -> int:
        from orchestrator import debug_log

        debug_log.begin(state, voice.line if verbose else None)
        return work(voice)

    return logged


def _left(state: Path) -> Callable[[], None]:
    """What looks for leftovers; imported now, since a signal may cut an import short later on."""
    from orchestrator.verbs import sweep as verb

    return lambda: verb.refuse_left(_store(state))


def _nothing(_: "Sweep") -> None:
    """Nobody waits to hear that a sweep is under way."""


def _detached(state: Path, as_json: bool, left: Callable[[], None]) -> "Callable[[Sweep], None]":
    """Go on without a terminal; the command that was typed ends here once that is under way."""
    from orchestrator.console import Voice
    from orchestrator.verbs import detached

    try:
        SIGNALS.begin()
        process = detached.fork(state)
    except Stopped as stopped:
        raise typer.Exit(_stopped(stopped, as_json, left)) from None
    except errors.DlperfError as error:
        Voice(as_json=as_json).error(error)
        raise typer.Exit(error.exit_code) from error
    if isinstance(process, detached.Begun):
        return process
    child = process

    def work(voice: "Voice") -> int:
        return detached.follow(child, voice)

    _command(as_json, work)


def _store(state: Path) -> "Store":
    from orchestrator.store import Store

    return Store(state)


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not (colon and all(_WHOLE.fullmatch(word) for word in (first, last))):
        raise typer.BadParameter(f"{text!r}; needed first:last, such as 20:120")
    if not int(first) < int(last):
        raise typer.BadParameter(f"{text!r}; needed the first iteration before the last")
    return int(first), int(last)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Everything that holds for all commands: files of ours are the user's alone."""
    os.umask(0o077)
    if version:
        typer.echo(f"dlperf-orch {__version__}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.command()
def provision(
    inventory: Annotated[
        str, typer.Argument(help="An inventory: path or name.", autocompletion=INVENTORIES)
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
    lock: Annotated[
        bool, typer.Option("--lock", help="Resolve digests and checksums, and write them down.")
    ] = False,
    image: Annotated[
        list[str] | None,
        typer.Option(help="Prepare this image; else the inventory's.", autocompletion=IMAGES),
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="Take images and downloads from this folder.")
    ] = None,
    recount: Annotated[
        bool, typer.Option("--recount", help="Count files of data sets again.")
    ] = False,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes: names, globs, !NAME for all but one.")
    ] = None,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """Are these nodes fit to measure? Prepare their images, ask, and check the answers."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import provision as verb

        wish = verb.Wish(inventory, tuple(image or ()), nodes, bundle, lock, recount)
        return (verb.dry_run if dry_run else verb.provision)(_store(state), wish, voice)

    _on_nodes(as_json, state, verbose, work)


@app.command()
def sweep(
    playbook: Annotated[
        str, typer.Argument(help="A playbook: path or name.", autocompletion=PLAYBOOKS)
    ],
    inventory: Annotated[
        str | None,
        typer.Option(help="Else the playbook's, or the last fit one.", autocompletion=INVENTORIES),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would start.")] = False,
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Globs over cases, such as 2x*; repeat it, or commas.",
            autocompletion=_complete_cases,
        ),
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, max=1000, help="Trials per case.")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new sweep instead of resuming.")
    ] = False,
    max_fail: Annotated[
        int | None,
        typer.Option(min=1, help="Start no more after this many trials without a valid outcome."),
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes: names, globs, !NAME for all but one.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run on without this terminal, once under way.")
    ] = False,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """Run every trial of a playbook that has no valid outcome yet, then collect."""
    left = _left(state)
    begun = _detached(state, as_json, left) if detach and not dry_run else _nothing

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import sweep as verb
        from orchestrator.verbs._campaign import Caller
        from orchestrator.verbs._requested import Options

        cases = tuple(case or ())
        options = Options(playbook, inventory, cases, repeats, new, max_fail, nodes)
        if dry_run:
            return verb.dry_run(_store(state), options, voice)
        return verb.sweep(_store(state), options, Caller(voice, SIGNALS, begun))

    _command(as_json, _logged(state, verbose, work), left)


@app.command()
def status(
    sweep_id: Annotated[
        str | None, typer.Argument(metavar="[SWEEP]", help=WHICH, autocompletion=_complete_sweeps)
    ] = None,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """What a sweep has done and what of it runs where; the newest unless one is named."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import status as verb

        return verb.status(_store(state), sweep_id, voice)

    _on_nodes(as_json, state, verbose, work)


@app.command()
def logs(
    trial: Annotated[str | None, typer.Argument(metavar="[TRIAL]")] = None,
    sweep_id: Annotated[
        str | None,
        typer.Option("--sweep", help=WHICH, autocompletion=_complete_sweeps),
    ] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Default: the newest.")] = None,
    rank: Annotated[int, typer.Option(min=0, help="Whose log, by node_rank.")] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until it ends.")
    ] = False,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """A trial's raw log: of the one that runs, else of the last, unless one is named."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import logs as verb

        wanted = verb.Wanted(sweep_id, trial, attempt, rank)
        return verb.logs(_store(state), wanted, voice, follow=follow)

    _on_nodes(as_json, state, verbose, work)


@app.command()
def stop(
    sweep_id: Annotated[
        str | None, typer.Argument(metavar="[SWEEP]", help=WHICH, autocompletion=_complete_sweeps)
    ] = None,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """End a sweep's controller and exactly what that sweep started; the newest unless named."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import stop as verb

        return verb.stop(_store(state), sweep_id, voice)

    _on_nodes(as_json, state, verbose, work)


@app.command()
def clean(
    inventory: Annotated[
        str | None, typer.Option(help="Else the last one found fit.", autocompletion=INVENTORIES)
    ] = None,
    images: Annotated[
        bool, typer.Option("--images", help="Images of ours that no site uses, too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed; change nothing.")
    ] = False,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """Remove what finished sweeps of this state folder left on the nodes."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import clean as verb

        return verb.clean(_store(state), inventory, voice, verb.What(images, dry_run))

    _on_nodes(as_json, state, verbose, work)


@app.command()
def trust(
    inventory: Annotated[
        str, typer.Argument(help="An inventory: path or name.", autocompletion=INVENTORIES)
    ],
    fingerprint: Annotated[
        list[str] | None, typer.Option(help="Trust keys with this fingerprint, SHA256:...")
    ] = None,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """Show the host keys of nodes, and add them to known_hosts after a yes."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import trust as verb

        return verb.trust(inventory, voice, tuple(fingerprint or ()))

    _on_nodes(as_json, state, verbose, work)


@app.command()
def bundle(
    inventory: Annotated[
        str, typer.Argument(help="A provisioned inventory.", autocompletion=INVENTORIES)
    ],
    folder: Annotated[Path, typer.Argument(help="Where the bundle is written.")],
    image: Annotated[
        list[str] | None, typer.Option(help="Else all that are provisioned.", autocompletion=IMAGES)
    ] = None,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """Write images and downloads into a folder, for `provision --bundle` without internet."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import bundle as verb

        return verb.bundle(_store(state), inventory, folder, tuple(image or ()), voice)

    _on_nodes(as_json, state, verbose, work)


@app.command()
def collect(
    sweep_id: Annotated[
        str | None, typer.Argument(metavar="[SWEEP]", help=WHICH, autocompletion=_complete_sweeps)
    ] = None,
    logs: Annotated[Path | None, typer.Option(help="A folder of logs, without a sweep.")] = None,
    workload: Annotated[
        str | None, typer.Option(help="What wrote those logs.", autocompletion=_complete_workloads)
    ] = None,
    window: Annotated[str | None, typer.Option(help="first:last iteration.")] = None,
    rule: Annotated[Rule | None, typer.Option(help="How throughput is taken from logs.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the reports on --logs here.")] = None,
    language: Annotated[
        Literal["en", "zh"] | None, typer.Option("--lang", help="Of report.md; English else.")
    ] = None,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
) -> None:
    """Logs to medians, speedups, tables and reports; the newest sweep unless one is named."""
    between = _window(window)
    if (logs is None) != (workload is None) or (logs is None and (window or rule or out)):
        raise typer.BadParameter("--logs DIR and --workload NAME belong together")
    if logs is not None and sweep_id is not None:
        raise typer.BadParameter("either a sweep or --logs DIR")
    if logs is not None and language and out is None:
        raise typer.BadParameter("--lang is of report.md; with --logs that needs --out DIR")

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import collect as verb
        from orchestrator.verbs._logs import Reading

        if logs is not None and workload is not None:
            where = verb.Out(out, language or "en") if out else None
            return verb.collect_logs(logs, Reading(workload, between, rule), voice, where)
        return verb.collect_sweep(_store(state), sweep_id, voice, language or "en")

    _command(as_json, work)


@app.command()
def published(
    framework: Annotated[str, typer.Option(metavar="GLOB", help="Such as oneflow-*.")] = "*",
    model: Annotated[str, typer.Option(metavar="GLOB", help="Such as bert*.")] = "*",
    precision: Annotated[str, typer.Option(metavar="GLOB", help="Such as amp*.")] = "*",
    as_json: Json = False,
) -> None:
    """What others published of these benchmarks, with its sources."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import published as verb

        return verb.list_published(verb.Wish(framework, model, precision), voice)

    _command(as_json, work)


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...")], as_json: Json = False
) -> None:
    """Judge inventories, playbooks and image files without touching anything."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import check as verb

        return verb.check(files, voice)

    _command(as_json, work)


@app.command()
def schema(
    kind: Annotated[str, typer.Argument(metavar="inventory|playbook")], as_json: Json = False
) -> None:
    """Print the JSON Schema of a kind of file, for editors."""

    def work(_: "Voice") -> int:
        from orchestrator.verbs import check as verb

        sys.stdout.write(verb.schema(kind))
        return 0

    _command(as_json, work)


@app.command(name="list")
def list_all(
    kind: Annotated[str, typer.Argument(metavar="playbooks|workloads|images|inventories|sweeps")],
    as_json: Json = False,
    state: State = DEFAULT_STATE,
) -> None:
    """What there is, here and shipped."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import list_ as verb

        return verb.list_all(_store(state), kind, voice)

    _command(as_json, work)


@data_sets.command(name="check")
def data_check(
    name: Annotated[str, typer.Argument(help="As inventories call it, such as imagenet.")],
    inventory: Annotated[
        str | None, typer.Option(help="Else the last one found fit.", autocompletion=INVENTORIES)
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes: names, globs, !NAME for all but one.")
    ] = None,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """Look at a data set on every node: there, whole, and the same everywhere?"""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import data as verb

        return verb.check(_store(state), verb.Wish(name, inventory, nodes), voice)

    _on_nodes(as_json, state, verbose, work)


@data_sets.command(name="prepare")
def data_prepare(
    name: Annotated[str, typer.Argument(help="As inventories call it, such as imagenet.")],
    inventory: Annotated[
        str | None, typer.Option(help="Else the last one found fit.", autocompletion=INVENTORIES)
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Folder of the sources, on every node.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="File here: classes of ImageNet's validation images.")
    ] = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes: names, globs, !NAME for all but one.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
    as_json: Json = False,
    state: State = DEFAULT_STATE,
    verbose: Verbose = False,
) -> None:
    """Bring a data set onto every node that has it not; nothing is overwritten."""

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import data as verb

        wish = verb.Wish(name, inventory, nodes, source, labels)
        if dry_run:
            return verb.dry_run(_store(state), wish, voice)
        return verb.prepare(_store(state), wish, voice, SIGNALS)

    _on_nodes(as_json, state, verbose, work)


def _inspect(kind: str, file: str) -> None:
    def work(voice: "Voice") -> int:
        from orchestrator.verbs import inspect as verb

        return verb.inspect_text(kind, file, voice)

    _command(True, work)


@inspecting.command()
def topology(file: FileOrDash, _json: AlwaysJson = False) -> None:
    """Read `nvidia-smi topo -m`."""
    _inspect("topology", file)


@inspecting.command()
def ibstat(file: FileOrDash, _json: AlwaysJson = False) -> None:
    """Read `ibstat`."""
    _inspect("ibstat", file)


@inspecting.command()
def gpu(file: FileOrDash, _json: AlwaysJson = False) -> None:
    """Read `nvidia-smi -q -x`."""
    _inspect("gpu", file)


@inspecting.command()
def log(
    file: FileOrDash,
    workload: Annotated[
        str, typer.Option(help="What wrote the log.", autocompletion=_complete_workloads)
    ],
    window: Annotated[str | None, typer.Option(help="first:last iteration.")] = None,
    rule: Annotated[Rule | None, typer.Option(help="How throughput is taken from it.")] = None,
    global_batch_size: Annotated[int | None, typer.Option(min=1)] = None,
    _json: AlwaysJson = False,
) -> None:
    """Read a training log."""
    between = _window(window)

    def work(voice: "Voice") -> int:
        from orchestrator.verbs import inspect as verb
        from orchestrator.verbs._logs import Reading

        reading = Reading(workload, between, rule)
        return verb.inspect_log(file, reading, global_batch_size, voice)

    _command(True, work)


def main() -> None:
    """Run the command line; a fault of ours goes to a file, with one line on the terminal."""
    SIGNALS.take()
    try:
        sys.exit(app(standalone_mode=False))
    except Stopped as stopped:
        sys.exit(_stopped(stopped, _wants_json(), None))
    except _WrongUsage as error:
        error.show()
        _wrong_usage(error)
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback on terminals
        path = _traceback(error)
        bug = errors.DlperfError(
            f"{type(error).__name__}: {error}", code="BUG", fix=f"report it with {path}"
        )
        sys.stderr.write(f"{bug}\n")
        _document(bug)
        sys.exit(bug.exit_code)
    finally:
        SIGNALS.ignore()


def _wrong_usage(error: typer.BadParameter) -> None:
    """End with the exit code of wrong usage, and with a document where JSON was asked for."""
    command = error.ctx.command_path if error.ctx else "dlperf-orch"
    _document(errors.UsageError(error.format_message(), code="USAGE", fix=f"see {command} --help"))
    sys.exit(error.exit_code)


def _document(error: errors.DlperfError) -> None:
    """An error that ends the program before or beside a command, where JSON was asked for."""
    if _wants_json():
        from orchestrator.console import Voice

        document = {"exit_code": error.exit_code, "errors": error.documents()}
        Voice(as_json=True).document(document)


def _wants_json() -> bool:
    return "--json" in itertools.takewhile(lambda word: word != "--", sys.argv[1:])


def _traceback(error: Exception) -> str:
    text = "".join(traceback.format_exception(error))
    for folder in (Path(os.environ.get("DLPERF_STATE", ".dlperf")), Path("/tmp")):
        path = folder / f"traceback-{os.getpid()}.txt"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except OSError:
            continue
        return str(path)
    return "the traceback, which could not be written"
