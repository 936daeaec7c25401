"""check and schema: files judged without touching anything, and what editors need to help."""

import json
from pathlib import Path

from orchestrator import errors, load
from orchestrator.console import Voice
from orchestrator.model.cluster import Cluster
from orchestrator.model.experiment import Experiment
from orchestrator.model.text import Noun
from orchestrator.verbs import _files

KINDS = {"nodes": "inventory", "workload": "playbook", "base": "image"}
SCHEMAS: dict[str, type[Noun]] = {"inventory": Cluster, "playbook": Experiment}


def check(paths: list[str], voice: Voice) -> int:
    """Judge every file; exit code.

    Raises:
        ConfigError: every complaint about all of them.
    """
    complaints: list[errors.Complaint] = []
    kinds: dict[str, str] = {}
    for path in paths:
        try:
            kinds[path] = _check(Path(path))
        except errors.ConfigError as error:
            complaints += error.complaints
    for path, kind in kinds.items():
        voice.line(f"{path}: a good {kind}")
    if complaints:
        raise errors.ConfigError(complaints)
    voice.document({"exit_code": 0, "files": kinds})
    return 0


def schema(kind: str) -> str:
    """The JSON Schema of a kind of file, as text.

    Raises:
        UsageError: there is no such kind.
    """
    model = SCHEMAS.get(kind)
    if model is None:
        raise errors.UsageError(
            f"there is no schema {kind!r}", code="NO-SCHEMA", fix=f"one of {', '.join(SCHEMAS)}"
        )
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(),
    }
    return json.dumps(document, indent=2) + "\n"


def _check(path: Path) -> str:
    document = load.read(path)
    keys = document.data if isinstance(document.data, dict) else {}
    kinds = [kind for key, kind in KINDS.items() if key in keys]
    if len(kinds) != 1:
        text = "cannot tell what this file is; needed one of the keys nodes (inventory), workload"
        raise errors.ConfigError([document.complaint((), f"{text} (playbook) or base (image)")])
    if kinds[0] == "inventory":
        _files.judged_cluster(document)
    elif kinds[0] == "playbook":
        _files.judged_playbook(document, path.stem)
    else:
        _files.judged_image(document)
    return kinds[0]
