"""check and schema: validate files without changing anything; JSON Schemas for editors."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestrator import errors, words
from orchestrator.console import Voice
from orchestrator.documents.document import Document
from orchestrator.files import shipped, yaml_reader
from orchestrator.inputs import json_schema, sites, user_files
from orchestrator.inputs.user_files import Playbook
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Image
from orchestrator.model.text import Noun
from orchestrator.planning import matrix

KINDS = {"nodes": "inventory", "slurm": "inventory", "workload": "playbook", "base": "image"}
SCHEMAS: dict[str, type[Noun]] = {"inventory": Cluster, "playbook": Experiment}
MODELS: dict[str, type[Noun]] = {**SCHEMAS, "image": Image}


def check(paths: list[str], voice: Voice) -> int:
    """Validate every file; exit code.

    Args:
        paths: files, or names, which other commands look up.

    Raises:
        ConfigError: with the problems of all files.
    """
    mistakes: list[errors.Mistake] = []
    kinds: dict[str, str] = {}
    valid: dict[str, Cluster | Playbook | Image] = {}
    for path in (str(path) for word in paths for path in _meant(word)):
        try:
            kinds[path], valid[path] = _check(Path(path))
        except errors.ConfigError as error:
            mistakes += error.mistakes
    for path, kind in kinds.items():
        voice.result(f"{path}: a valid {kind}")
    for line in _unprepared(valid):
        voice.line(line)
    mistakes += _unmeetable(valid)
    mistakes += _too_long(valid)
    if mistakes:
        raise errors.ConfigError(mistakes)
    voice.document({"exit_code": 0, "files": kinds})
    return 0


def schema(kind: str) -> str:
    """Return the JSON Schema of a kind of file, as text.

    Raises:
        UsageError: there is no such kind.
    """
    model = SCHEMAS.get(kind)
    if model is None:
        raise errors.UsageError(
            f"there is no schema {kind!r}", code="NO-SCHEMA", fix=f"one of {', '.join(SCHEMAS)}"
        )
    generated = json_schema.of(model)
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    return json.dumps({**draft, **generated, "title": f"dlperf-orch {kind}"}, indent=2) + "\n"


def _meant(word: str) -> list[Path]:
    """Return the file, or every inventory, playbook and image of that name, here or shipped."""
    if Path(word).exists():
        return [Path(word)]
    kinds: tuple[shipped.Kind, ...] = ("inventory", "playbooks", "images")
    return [path for kind in kinds if (path := shipped.find(kind, word))] or [Path(word)]


def _unprepared(valid: Mapping[str, Cluster | Playbook | Image]) -> Iterator[str]:
    """Lines about playbooks whose image the one inventory beside them does not have prepared."""
    clusters = [(path, noun) for path, noun in valid.items() if isinstance(noun, Cluster)]
    if len(clusters) != 1:
        return
    ((path, cluster),) = clusters
    if cluster.slurm is not None:
        cluster = cluster.given({"any": "any"})
    if not cluster.in_containers:
        return
    prepared = sites.to_prepare(cluster)
    for other, noun in valid.items():
        if isinstance(noun, Playbook) and noun.image.name not in prepared:
            needed = f"`images:` of {path} with {noun.image.name}"
            yield f"{other}: its image is not prepared there; needed {needed}"


def _unmeetable(valid: Mapping[str, Cluster | Playbook | Image]) -> Iterator[errors.Mistake]:
    """Yield the cases of playbooks whose ranks cannot meet on an inventory beside them."""
    clusters = [noun for noun in valid.values() if isinstance(noun, Cluster)]
    for playbook in (noun for noun in valid.values() if isinstance(noun, Playbook)):
        for cluster in clusters:
            for conflict in matrix.families(playbook.experiment, playbook.workload, cluster):
                yield playbook.document.mistake(conflict.path, conflict.text)


def _too_long(valid: Mapping[str, Cluster | Playbook | Image]) -> Iterator[errors.Mistake]:
    """Yield the playbooks none of whose trials fits into a job of an inventory beside them."""
    playbooks = [noun for noun in valid.values() if isinstance(noun, Playbook)]
    for path, noun in valid.items():
        if not isinstance(noun, Cluster) or noun.slurm is None:
            continue
        for playbook in playbooks:
            if shortage := noun.slurm.shortage(playbook.experiment.method.time_limit_s):
                text = f"WALLTIME with {path}: {'; '.join(shortage)}"
                yield playbook.document.mistake(("method", "time_limit_s"), text)


def _check(path: Path) -> tuple[str, Cluster | Playbook | Image]:
    document = yaml_reader.draft(path)
    kind = _kind(document)
    if kind == "inventory":
        return kind, user_files.judged_cluster(document)
    if kind == "playbook":
        return kind, user_files.judged_playbook(document, shipped.named(path))
    return kind, user_files.judged_image(document)


def _kind(document: Document) -> str:
    """Return what a file is by its keys, or by what a misspelt one of them must mean.

    Raises:
        ConfigError: it may be nothing, or several.
    """
    keys = set(document.data) if isinstance(document.data, dict) else set()
    kinds = {KINDS[key] for key in keys if key in KINDS}
    if len(kinds) == 1:
        return kinds.pop()
    similar = [
        (len(keys & fields), kind)
        for name, kind in KINDS.items()
        if (fields := set(MODELS[kind].model_fields))
        and any(words.did_you_mean(key, [name]) for key in keys - fields)
    ]
    if similar and not kinds:
        return max(similar)[1]
    text = "cannot tell what this file is; needed one of the keys nodes (inventory), workload"
    unclear = document.mistake((), f"{text} (playbook) or base (image)")
    raise errors.ConfigError(document.problems or [unclear])
