"""README and docs/ are true: links, tables, fields, files, rooms and the picture."""

import html
import json
import pkgutil
import re
import tomllib
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

import orchestrator
from orchestrator import errors, workloads
from orchestrator.cli.app import app
from orchestrator.datasets import DATASETS
from orchestrator.files import shipped
from orchestrator.inputs import json_schema
from orchestrator.schedulers.scheduler import Scheduler
from orchestrator.verbs import check
from tests.conftest import Place
from tests.docs import fields, state_files
from tests.docs.commands import list_commands
from tests.docs.pages import PAGES, ROOT, called, prose, rows
from tests.docs.picture import PICTURE, shown

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# A path of the repository, or of the package, without a word that stands for a name.
PATH = re.compile(r"`((?:[a-z][a-z0-9_-]*/)+[a-z0-9_.-]*)`")
OPTION = re.compile(r"--[a-z][a-z-]*")
MOST_LINES = 250
MOST_BYTES = 40_000
CLOSED_PIPE = 141  # no error of ours: nobody would read it
DEVELOPERS = [
    *(ROOT / "docs").glob("adding-*.md"),
    *(ROOT / name for name in ("docs/architecture.md", "CONTRIBUTING.md")),
]
# Not after a sweep that went well on local nodes, without a terminal of its own; or only of a task
# that lasted long enough to be observed.
ELSEWHERE = (
    "downloads/ identity traceback- turns/ detached- _result.json .gpus .state slurm/ images/"
    " canary/ step.sh srun.err"
)
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


def read(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """Return what links can lead to within a page, as GitHub names its headings."""
    headings = HEADING.findall(prose(path))
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in headings}


@pytest.mark.parametrize("path", PAGES, ids=called)
def test_a_page_is_short_and_its_links_lead_somewhere(path: Path) -> None:
    """Within the repository; the web is not asked. Paths of developers' pages are there too."""
    for target in LINK.findall(prose(path)):
        if not target.startswith("https://"):
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            assert file.exists(), target
            assert file.is_relative_to(ROOT), target
            assert not anchor or anchor in anchors(file), target
    for name in PATH.findall(prose(path)) if path in DEVELOPERS else ():
        assert (ROOT / name).exists() or (ROOT / "orchestrator" / name).exists(), name
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_page_is_found_from_the_readme() -> None:
    found = {ROOT / "README.md"}
    for path in (todo := [ROOT / "README.md"]):
        for target in LINK.findall(prose(path)):
            file = (path.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".md" and file not in found and file.exists():
                found.add(file)
                todo.append(file)
    assert set(PAGES) <= found


def test_every_command_is_on_a_page_with_its_options() -> None:
    """Once, and no command or option that the program has not; common ones are at the top."""
    told: dict[str, list[str]] = {}
    common = set[str]()
    for page in ROOT.glob("docs/commands*.md"):
        top, *parts = page.read_text(encoding="utf-8").split("\n## ")
        common |= {word for cells in rows(top) for word in OPTION.findall(cells[0])}
        for part in parts:
            title, _, text = part.partition("\n")
            options = sorted(word for cells in rows(text) for word in OPTION.findall(cells[0]))
            told |= dict.fromkeys(title.split(", "), options)
    assert common == {"--json", "--state", "--verbose", "--help"}
    having = {
        words: {name for param in command.params for name in param.opts if name.startswith("--")}
        for words, command in list_commands(app)
    }
    assert {words: sorted(options - common) for words, options in having.items()} == told


def test_every_exit_code_is_on_its_page() -> None:
    """And in which order they count, in the page's first lines."""
    text = read("exit-codes.md")
    told = [int(cells[0].strip("`")) for cells in rows(text)]
    assert told == sorted({*errors.PRECEDENCE, CLOSED_PIPE})
    order = [int(code) for code in re.findall(r"\d+", text.partition("\n|")[0])]
    assert order == [code for code in errors.PRECEDENCE if code > 2]


@pytest.mark.parametrize("path", fields.PAGES, ids=called)
def test_tables_of_fields_are_those_of_the_models(path: Path) -> None:
    """Each model and each workload has one; `python -m tests.docs.fields` writes them."""
    text = path.read_text(encoding="utf-8")
    assert text == fields.written(path)
    tables = {(kind, name) for _, kind, name, _ in fields.TABLE.findall(text)}
    kind = path.stem
    wanted = {(kind, name) for name in (kind, *json.loads(check.build_schema(kind))["$defs"])}
    if kind == "playbook":
        wanted |= {("params", name) for name in workloads.names()}
    assert tables == wanted


def test_workloads_describe_their_parameters() -> None:
    for name in workloads.names():
        found = workloads.require(name)
        assert set(json_schema.meanings(found.params)) == set(found.params.model_fields), name


@pytest.mark.cluster
def test_files_of_a_sweep_are_those_of_the_page(place: Place) -> None:
    """Each file is on the page, and each file of the page is there; locks contain nothing."""
    place.must("provision", "two")
    place.must("sweep", "toy", "--case", "1x1", "--repeats", "1")
    place.must("collect", "--lang", "zh")
    assert state_files.untold(place.state) == set()
    names = state_files.left(place.state)
    absent = {
        name
        for name in state_files.table("files.md")
        if not any(map(state_files.pattern(name).fullmatch, names))
    }
    assert {name for name in absent if not any(it in name for it in ELSEWHERE.split())} == set()


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("benchmarks.md", shipped.names("playbooks").keys()),
        ("data-sets.md", DATASETS.keys()),
    ],
)
def test_a_page_lists_what_ships(page: str, names: AbstractSet[str]) -> None:
    assert set(state_files.table(page)) == set(names)
    if page == "benchmarks.md":
        assert set(shipped.names("images")) <= set(re.findall("`([^`]+)`", read(page)))


def test_rooms_and_homes_of_libraries_are_on_the_page_of_architecture() -> None:
    """Each room in the table and in the picture, each library with the room that wraps it."""
    page = read("architecture.md")
    there = {module.name for module in pkgutil.iter_modules(orchestrator.__path__)}
    told = [cells[0].strip("*`") for cells in rows(page.replace("| **`", "| `"))]
    assert sorted(told) == sorted(there - {"__main__"})
    layers = {*" ".join(CONTRACTS[0]["layers"]).replace(":", " ").split()} - {"__main__"}
    folders = {name for name in layers if (ROOT / "orchestrator" / name).is_dir()}
    picture = page.partition("## The life")[0]
    assert folders <= set(re.findall("([a-z_]+)/", picture))
    assert layers <= set(re.findall("[a-z_]+", picture))
    (homes,) = (contract for contract in CONTRACTS if contract["name"].endswith("has one home"))
    told_homes = page[page.index("third-party library has one home") :].partition("\n\n")[0]
    for line in homes["ignore_imports"]:
        module, library = line.split(" -> ")
        assert {"yaml": "PyYAML"}.get(library, library) in told_homes, library
        assert module.split(".")[1] in told_homes, module


def test_the_page_of_schedulers_has_every_method() -> None:
    """A new scheduler extends that class."""
    told = re.findall(r"^   \| (`.*?) \|", read("adding-a-scheduler.md"), re.MULTILINE)
    methods = {name for name in dir(Scheduler) if not name.startswith("_")}
    assert sorted(re.findall("`([a-z]+)`", " ".join(told))) == sorted(methods)


def test_the_picture_shows_what_collect_prints(tmp_path: Path) -> None:
    """It is small and asks no server; `python -m tests.docs.picture` draws it anew."""
    svg = PICTURE.read_text(encoding="utf-8")
    lines = re.findall(r"<text[^>]*>(.*?)</text>", svg)
    title, *drawn = html.unescape(" ".join(lines)).replace("\xa0", " ").split()
    assert title == "dlperf-orch"
    assert drawn == shown(tmp_path).split()
    assert len(svg) < MOST_BYTES
    # The name of the format that it has is no link.
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "@font-face" not in svg
