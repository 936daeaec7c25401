"""Data sets: what each must hold, and how it comes onto a node.

Each module of ``sets/`` holds one as ``DATASET``; inventories use its name under ``data:``. A new
data set is a new module there. The modules beside this one judge what nodes say of any of them:
contents, look (what there is to prepare it from), labels, progress. Pure.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.datasets import sets

SOURCE, TARGET = "/data/source", "/data/target"


@dataclass(frozen=True, slots=True)
class Classes:
    """A folder that holds one folder of files for each class.

    Args:
        folder: below the data set's own.
        folders, files: of the whole set; another number is a warning, since programs can read
            part of it.
        optional: whether training does without.
    """

    folder: str
    folders: int
    files: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Shards:
    """Numbered files of one folder, beginning with 0.

    Args:
        folder: below the data set's own; empty for that itself.
        stem: what their names begin with.
        digits: of a number with leading zeros; 0 for numbers without.
        count: of the whole set; another number is a warning.
        told: whether each name ends in ``-of-`` and the number of all.
    """

    folder: str
    stem: str
    digits: int
    count: int
    told: bool = False
    optional: bool = False

    @property
    def pattern(self) -> str:
        """What a whole name matches, in words that Python, find and awk understand alike."""
        number = f"[0-9]{{{self.digits}}}" if self.digits else "(0|[1-9][0-9]*)"
        return f"{self.stem}{number}" + (f"-of-{number}" if self.told else "")

    def name(self, number: int, total: int) -> str:
        """What the file of that number is called among so many."""
        shown = f"{self.stem}{number:0{self.digits}}"
        return f"{shown}-of-{total:0{self.digits}}" if self.told else shown


@dataclass(frozen=True, slots=True)
class Named:
    """Files of one folder that belong together under names of their own."""

    folder: str
    names: tuple[str, ...]
    optional: bool = False

    @property
    def pattern(self) -> str:
        """What each of the names matches, and nothing else."""
        return "|".join(name.replace(".", "[.]") for name in self.names)


Part = Classes | Shards | Named


@dataclass(frozen=True, slots=True)
class Need:
    """Something that must lie in the folder that the user names.

    Args:
        pattern: of whole names, as find knows it.
        many: any number of files, there or one folder deeper; else one, right there.
        least: how many there must be.
    """

    pattern: str
    many: bool = False
    least: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program of upstream's that makes the data set, in a container of a workload's image.

    Args:
        program: a path that ``places`` are searched for, the first that has it counts; it is where
            the command runs. ``{code}`` stands for the image's own folder of the program.
        target: where the command finds the empty folder that it fills.
        gpus: whether it loads libraries that need a driver.
        total: how many files come out; 0 where that is not known.
        doubt: the program's whole log to why its result is not to be trusted, whatever its exit
            status; empty for no doubt.
    """

    image: str
    program: str
    places: tuple[str, ...]
    argv: tuple[str, ...]
    target: str = TARGET
    gpus: bool = False
    total: int = 0
    doubt: Callable[[str], str] = lambda _log: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to bring a data set onto a node; the first whose needs are met is taken.

    Args:
        title: what is done, in words.
        script: a file of this package, run on the node with the folder that is being filled, the
            folder of sources, and ``words``; for a tool it runs in the container.
        needs: in the folder that the user names.
        after: another data set of the same node, seen by a tool at ``after_at``.
        labels: whether it needs to be told the classes of validation images.
        links: whether nothing is written where source and target share a file system.
        share: bytes that come out for each byte of the sources, generously.
    """

    title: str
    script: str
    needs: tuple[Need, ...] = ()
    words: tuple[str, ...] = ()
    after: str | None = None
    after_at: str = ""
    labels: bool = False
    links: bool = False
    share: float = 1.05
    tool: Tool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One data set.

    Args:
        parts: what it is made of.
        like: another data set whose files must have the same names, where a node has it.
        ways: how to prepare it, the best first.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    ways: tuple[Way, ...]
    like: str | None = None


def ready(*parts: Shards | Named) -> Way:
    """Files that are there already, put into their place."""
    words = tuple(word for part in parts for word in (part.folder, part.pattern))
    needs = tuple(
        Need(part.pattern, many=True, least=len(part.names) if isinstance(part, Named) else 1)
        for part in parts
        if not part.optional
    )
    return Way(
        title="puts ready-made files into their place (hard links, or copies that are compared)",
        script="place.sh",
        needs=needs,
        words=words,
        links=True,
    )


def names() -> tuple[str, ...]:
    """Names of all data sets, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(sets.__path__)))


def find(name: str) -> Dataset | None:
    """The data set of that name, or None if there is none."""
    if name not in names():
        return None
    found = importlib.import_module(f"{sets.__name__}.{name}").DATASET
    return found if isinstance(found, Dataset) else None
