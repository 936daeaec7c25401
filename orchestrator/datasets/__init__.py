"""Data sets: what each must hold, and how it comes onto a node.

``sets`` has them by name, which inventories use under ``data:``. ``contents`` and ``look`` ask a
node what it has and what it could be prepared from, ``judge`` finds what is missing, ``labels``
reads classes of validation images, ``progress`` the lines of scripts. Pure.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Classes:
    """A folder that holds one folder of files per class.

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
        with_total: whether each name ends in ``-of-`` and the number of all.
    """

    folder: str
    stem: str
    digits: int
    count: int
    with_total: bool = False
    optional: bool = False

    @property
    def pattern(self) -> str:
        """Return a regular expression for whole names, common to Python, find and awk."""
        number = f"[0-9]{{{self.digits}}}" if self.digits else "(0|[1-9][0-9]*)"
        return f"{self.stem}{number}" + (f"-of-{number}" if self.with_total else "")

    def name(self, number: int, total: int) -> str:
        """Return the name of a file, by its number from 0 and the number of all files."""
        shown = f"{self.stem}{number:0{self.digits}}"
        return f"{shown}-of-{total:0{self.digits}}" if self.with_total else shown


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Files of one folder with fixed names."""

    folder: str
    names: tuple[str, ...]
    optional: bool = False

    @property
    def pattern(self) -> str:
        """Return a regular expression that matches these names only."""
        return "|".join(name.replace(".", "[.]") for name in self.names)


Part = Classes | Shards | NamedFiles


@dataclass(frozen=True, slots=True)
class Need:
    """Files that must lie in the folder of sources.

    Args:
        pattern: of whole names, as find knows it.
        many: any number of files, there or one folder deeper; else one, right there.
        least: how many there must be.
    """

    pattern: str
    many: bool = False
    least: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to prepare a data set on a node; the first whose needs are met is taken.

    Args:
        title: what is done, in words.
        script: a file of this package, run on the node with the folder that is being filled, the
            folder of sources, and ``words``.
        needs: in the folder that the user names.
        labels: whether it needs to be told the classes of validation images.
        links: whether nothing is written where source and target share a file system.
        share: bytes that come out per byte of the sources, generously.
    """

    title: str
    script: str
    needs: tuple[Need, ...]
    words: tuple[str, ...] = ()
    labels: bool = False
    links: bool = False
    share: float = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One data set.

    Args:
        parts: what it is made of.
        ways: how to prepare it, the best first.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    ways: tuple[Way, ...]


def ready(*parts: Shards | NamedFiles) -> Way:
    """Return the way for ready-made files, which are linked or copied into place."""
    words = tuple(word for part in parts for word in (part.folder, part.pattern))
    needs = tuple(
        Need(part.pattern, many=True, least=len(part.names) if isinstance(part, NamedFiles) else 1)
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
