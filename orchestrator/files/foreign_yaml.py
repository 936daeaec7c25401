"""YAML of other tools, read as they mean it; ours is read strictly by ``yaml_reader``."""

from pathlib import Path

import yaml

from orchestrator import errors

_MOST_BYTES = 4 << 20


def read(path: Path) -> object:
    """The document in the file; tags of programs, as Ansible's ``!vault``, are text.

    Raises:
        UsageError: NO-FILE; it cannot be read, or is no text. HOST; it is no YAML, with the place.
    """

    class Loader(yaml.SafeLoader):
        """Takes unknown tags as their plain value; its own class, since constructors are shared."""

    Loader.add_multi_constructor("!", lambda _loader, _tag, node: str(node.value))
    try:
        with open(path, "rb") as file:
            return yaml.load(file.read(_MOST_BYTES), Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        where = f":{place.line + 1}:{place.column + 1}" if place else ""
        raise errors.UsageError(
            f"{path}{where}: {error.problem or error.context}; needed YAML",
            code="HOST",
            fix="correct the file",
        ) from error
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        first = str(getattr(error, "strerror", None) or error).splitlines()[0]
        raise errors.UsageError(
            f"cannot read {path}: {first}", code="NO-FILE", fix="give a file of YAML"
        ) from error
