"""Two nodes of this machine, whose data sets are prepared and checked."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import processes
from tests.conftest import Place


@dataclass
class Nodes:
    """Two nodes of this machine, each with folders of its own."""

    place: Place
    folder: Path

    def write(self, *names: str, **data: str) -> None:
        """The inventory: data sets by name, ``{node}`` in a path for the node's own name."""
        entries = []
        for number, name in enumerate(names or ("node1", "node2"), 1):
            paths = ", ".join(f"{key}: {path.format(node=name)}" for key, path in data.items())
            entries.append(
                f"  - {{name: {name}, address: 127.0.0.{number}, data: {{{paths}}},"
                f" folder: {self.folder}/{name}-work}}\n"
            )
        head = "name: pair\ndefaults: {transport: local, runtime: process}\nnodes:\n"
        (self.place.folder / "inventory/pair.yaml").write_text(head + "".join(entries))

    def run(self, verb: str, name: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """`data VERB NAME`, to its end."""
        return self.place.run("data", verb, name, "--inventory", "pair", *words)

    def json(self, verb: str, name: str, *words: str, code: int = 0) -> Any:
        """Its document, if it ends with this exit code."""
        done = self.run(verb, name, *words, "--json")
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
        document = json.loads(done.stdout)
        assert document["exit_code"] == code
        return document

    def pids(self) -> list[int]:
        """Processes of preparations of these nodes."""
        found = []
        for path in processes.files("cmdline"):
            try:
                words = path.read_bytes()
            except OSError:
                continue
            if f"{self.folder}/".encode() in words and b"dlp-data-" in words:
                found.append(int(path.parent.name))
        return found


def codes(document: Any) -> set[tuple[str, str]]:
    """Severities and codes of what was found."""
    return {(finding["severity"], finding["code"]) for finding in document["findings"]}
