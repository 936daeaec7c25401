"""Tables of the fields of inventories, playbooks and workloads' parameters, from the models.

``python -m tests.docs.fields`` writes them anew into docs/, between their two comments.
"""

import json
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator import workloads
from orchestrator.inputs import json_schema
from orchestrator.verbs import check
from tests.docs.pages import ROOT

PAGES = (ROOT / "docs/inventory.md", ROOT / "docs/playbook.md")
TABLE = re.compile(r"(<!-- fields: (\w+) (\w+) -->\n).*?(<!-- end of fields -->)", re.DOTALL)
HEAD = "| field | takes | default | meaning |\n|---|---|---|---|\n"
A_NAME = "2 to 63 letters, digits, '_', '.' or '-', beginning with a letter or digit"
Schema = Mapping[str, Any]


def written(path: Path) -> str:
    """A page as it should be: with the tables that the models give."""
    return TABLE.sub(
        lambda found: f"{found[1]}{table(found[2], found[3])}{found[4]}",
        path.read_text(encoding="utf-8"),
    )


def table(kind: str, name: str) -> str:
    """The table of one model.

    Args:
        kind: inventory, playbook, or ``params`` for a workload's parameters.
        name: of the model; of the whole file its kind; of the workload.
    """
    if kind == "params":
        found = workloads.find(name)
        assert found is not None
        return HEAD + "".join(rows(json_schema.of(found.params)))
    whole = json.loads(check.build_schema(kind))
    model = whole if name == kind else whole["$defs"][name]
    shared = whole["$defs"]["Settings"]["properties"] if name == "NodeEntry" else ()
    return HEAD + "".join(rows(model, shared))


def rows(model: Schema, shared: Container[str] = ()) -> Iterator[str]:
    """A row for each field that no other table has."""
    for name, field in model["properties"].items():
        if name in shared:
            continue
        default = "required" if name in model.get("required", ()) else shown(field.get("default"))
        words = " ".join(field.get("description", "").split())
        yield f"| `{name}` | {taken(field)} | {default} | {words.replace('|', '/')} |\n"


def shown(default: object) -> str:
    """A default as YAML has it; nothing where there is none."""
    return "" if default in (None, [], {}) else f"`{json.dumps(default).strip(chr(34))}`"


def taken(field: Schema) -> str:
    """What a field takes, in words."""
    branches = (*field.get("anyOf", ()), *field.get("oneOf", ()))
    choices = [branch for branch in branches if branch.get("type") != "null"]
    if choices:
        return " or ".join(map(taken, choices))
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        return f"list: {taken(field['items'])}" if "items" in field else "list"
    return of_type(field)


def of_type(field: Schema) -> str:
    """What a text, a number or a mapping must be."""
    if "patternErrorMessage" in field:
        needed = str(field["patternErrorMessage"]).removeprefix("needed ")
        return needed.replace(A_NAME, "a name")
    kinds = {"boolean": "true or false", "object": "mapping", "string": "text"}
    kinds |= {"integer": "whole number", "number": "number"}
    least, most = field.get("minimum"), field.get("maximum")
    between = f" from {least} to {most}" if None not in (least, most) else ""
    above = f" above {field['exclusiveMinimum']}" if "exclusiveMinimum" in field else ""
    return f"{kinds[field['type']]}{between or above}"


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page), encoding="utf-8")
