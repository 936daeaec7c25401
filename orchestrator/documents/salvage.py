"""The valid rest of a bad file, so that its other problems are reported too."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from orchestrator.documents import field_errors
from orchestrator.documents.document import Document, Tree, Where
from orchestrator.model.text import Conflict

M = TypeVar("M", bound=BaseModel)
_Places = Mapping[Where, tuple[int, ...]]

# Keys that no judgement of what is beside them depends on.
_APART = frozenset(
    {"description", "workload", "image", "inventory", "method"}
    | {"repeats", "iterations", "time_limit_s", "stall_limit_s"}
)
_CASES = frozenset({"grid", "cases", "exclude"})


@dataclass(frozen=True, slots=True)
class Salvaged(Generic[M]):
    """The part of a file that is valid.

    Args:
        removed: paths of invalid values and missing keys.
        places: by the place of a list in the file, the places in it of the items that were kept.
    """

    model: M
    removed: frozenset[Where]
    places: _Places

    def sure(self, conflicts: Iterable[Conflict]) -> Iterator[Conflict]:
        """The conflicts that are true whatever was removed, with their paths in the file."""
        for conflict in conflicts:
            path = _in_file(conflict.path, self.places)
            if not any(_doubtful(path, gone) for gone in self.removed):
                yield Conflict(path, conflict.text)


def salvaged(
    document: Document, model: type[M], stand_ins: Mapping[Where, Tree]
) -> Salvaged[M] | None:
    """As much of the document as the model takes; None where nothing of it can be judged.

    Args:
        stand_ins: what to take for keys that are needed and missing, by their places; in a place,
            ``*`` is any item of a list, and in a text ``{}`` is which one.
    """
    gone: dict[Where, Tree] = dict.fromkeys((*document.broken, *document.empty(())))
    while () not in gone:
        before = dict(gone)
        places: dict[Where, tuple[int, ...]] = {}
        data = _rest(document.data, (), gone, places)
        try:
            instance = model.model_validate_json(json.dumps(data), strict=True)
        except ValidationError as error:
            for at, missing in field_errors.places(error, data, model):
                where = _in_file(at, places)
                value = _stand_in((*where, missing), stand_ins) if missing else None
                gone[where if value is None else (*where, missing)] = value
        else:
            return Salvaged(instance, frozenset(gone), places)
        if gone == before:
            return None
    return None


def _stand_in(path: Where, stand_ins: Mapping[Where, Tree]) -> Tree:
    items = [step for step in path if isinstance(step, int)]
    value = stand_ins.get(tuple("*" if isinstance(step, int) else step for step in path))
    return value.format(*items) if isinstance(value, str) else value


def _rest(
    value: Tree, at: Where, gone: Mapping[Where, Tree], places: dict[Where, tuple[int, ...]]
) -> Tree:
    """The value without what is gone, with what stands in for some of it."""
    if isinstance(value, dict):
        kept = {key: inner for key, inner in value.items() if (*at, key) not in gone}
        rest = {key: _rest(inner, (*at, key), gone, places) for key, inner in kept.items()}
        here = {str(path[-1]): stand_in for path, stand_in in gone.items() if path[:-1] == at}
        return rest | {key: stand_in for key, stand_in in here.items() if stand_in is not None}
    if isinstance(value, list):
        places[at] = tuple(place for place in range(len(value)) if (*at, place) not in gone)
        return [_rest(value[place], (*at, place), gone, places) for place in places[at]]
    return value


def _in_file(path: Where, places: _Places) -> Where:
    place: Where = ()
    for step in path:
        kept = places.get(place, ())
        place = (*place, kept[step] if isinstance(step, int) and step < len(kept) else step)
    return place


def _doubtful(path: Where, gone: Where) -> bool:
    """Whether what is said of ``path`` may not be true once what is gone is mended."""
    if path[: len(gone)] == gone:
        return True
    innocent = gone[-1] in _APART
    if gone[:-1] == path or not path:
        return gone[:-1] == path and not innocent
    if path[0] == "method":
        return gone[0] == "method" and not innocent
    if path[0] == "nodes":
        return path[-1] != "name" and (gone[0] == "defaults" or gone[:2] == path[:2])
    of_cases = path[0] in ("cases", "exclude") or path[:2] == ("grid", "placement")
    return of_cases and "params" not in path and _changes_cases(path, gone)


def _changes_cases(path: Where, gone: Where) -> bool:
    """Whether cases at ``path`` may be others once what is gone is mended."""
    if path[0] == "exclude" or gone[0] not in _CASES:
        return gone[0] not in _APART
    is_key = isinstance(gone[-1], str)
    return is_key and gone[0] == path[0] and (path[0] == "grid" or gone[:2] == path[:2])
