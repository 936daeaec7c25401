"""check and schema: validate files without changing anything; JSON Schemas for editors."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator import errors
from orchestrator.cli.command import Face, command
from orchestrator.documents import Document, Where
from orchestrator.files import shipped, yaml_reader
from orchestrator.inputs import json_schema, user_files
from orchestrator.inputs.user_files import Playbook
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.image import Image
from orchestrator.model.text import Noun
from orchestrator.schedulers import slurm_queue

SCHEMAS: dict[str, type[Noun]] = {"inventory": Cluster, "playbook": Experiment}
MODELS: dict[str, type[Noun]] = {**SCHEMAS, "image": Image}


@command("check", "check inventory/mine.yaml playbooks/today.yaml")
def check(
    face: Face, files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Or names.")]
) -> int:
    voice = face.voice
    mistakes: list[errors.Mistake] = []
    kinds: dict[str, str] = {}
    valid: dict[str, Cluster | Playbook | Image] = {}
    for path in (path for word in files for path in _find_files(word)):
        try:
            kinds[str(path)], valid[str(path)] = _check(path)
        except errors.ConfigError as error:
            mistakes += error.mistakes
    for name, kind in kinds.items():
        voice.result(f"{name}: a valid {kind}")
    mistakes += _check_together(valid)
    if mistakes:
        raise errors.ConfigError(mistakes)
    return voice.finish({"files": kinds})


@command("schema", "schema playbook > playbook.schema.json")
def schema(_face: Face, kind: Literal["inventory", "playbook"]) -> int:
    sys.stdout.write(build_schema(kind))
    return 0


def build_schema(kind: str) -> str:
    """Return the JSON Schema of a kind of file, as text."""
    generated = json_schema.of(SCHEMAS[kind])
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    return json.dumps({**draft, **generated, "title": f"dlperf-orch {kind}"}, indent=2) + "\n"


def _find_files(word: str) -> list[Path]:
    """Return the file, or every inventory, playbook and image of that name, here or shipped."""
    if Path(word).exists():
        return [Path(word)]
    kinds: tuple[shipped.Kind, ...] = ("inventory", "playbooks", "images")
    return [path for kind in kinds if (path := shipped.find(kind, word))] or [Path(word)]


def _check_together(valid: Mapping[str, Cluster | Playbook | Image]) -> Iterator[errors.Mistake]:
    """Yield what the one inventory says of the playbooks beside it that cannot run there."""
    clusters = [(path, noun) for path, noun in valid.items() if isinstance(noun, Cluster)]
    if len(clusters) != 1:
        return
    ((path, cluster),) = clusters
    if cluster.slurm is not None:
        cluster = slurm_queue.stand_ins(cluster)
    prepared = [user_files.image(choice)[0].name for choice in cluster.images]
    for playbook in (noun for noun in valid.values() if isinstance(noun, Playbook)):
        try:
            user_files.refuse_on(playbook, cluster)
        except errors.ConfigError as error:
            yield from error.mistakes
        if cluster.in_containers and playbook.image.name not in prepared:
            needed = f"needed `images:` of {path} with {playbook.image.name}"
            text = f"its image is not prepared there; {needed}"
            yield playbook.document.mistake(("image",), text)
        limit_s = playbook.experiment.method.time_limit_s
        if cluster.slurm is not None and (shortage := cluster.slurm.shortage(limit_s)):
            text = f"WALLTIME with {path}: {'; '.join(shortage)}"
            yield playbook.document.mistake(("method", "time_limit_s"), text)


def _check(path: Path) -> tuple[str, Cluster | Playbook | Image]:
    document = yaml_reader.read(path)
    kind = _find_kind(document)
    if kind == "inventory":
        cluster = user_files.judged_cluster(document)
        for index, choice in enumerate(cluster.images):
            with _judging(document, ("images", index)):
                user_files.image(choice)
        return kind, cluster
    if kind == "playbook":
        with _judging(document, ("image",)):
            return kind, user_files.judged_playbook(document, path.stem)
    return kind, user_files.judged_image(document)


@contextmanager
def _judging(document: Document, path: Where) -> Iterator[None]:
    """Raise a usage error of the block as a mistake at ``path``."""
    try:
        yield
    except errors.UsageError as error:
        raise errors.ConfigError([document.mistake(path, f"{error.cause}; {error.fix}")]) from error


def _find_kind(document: Document) -> str:
    """Return the kind of file that has most of the document's keys."""
    keys = set(document.data) if isinstance(document.data, dict) else set()
    shared = {kind: len(keys & set(model.model_fields)) for kind, model in MODELS.items()}
    kind = max(shared, key=shared.__getitem__)
    if not shared[kind]:
        text = "cannot tell what this file is; needed one of the keys nodes (inventory), workload"
        unclear = document.mistake((), f"{text} (playbook) or base (image)")
        raise errors.ConfigError([unclear])
    return kind
