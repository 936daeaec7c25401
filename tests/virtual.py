"""A folder where a person works on the virtual cluster: the command line, and what it leaves."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster import Cluster, overlay

TESTS = Path(__file__).parent
PROGRAM = (sys.executable, "-c", "from orchestrator.cli import main; main()")
PATIENCE_S = 600.0
OURS = "docker ps -aq --filter label=dlperf.sweep; find /var/tmp/dlperf-root -mindepth 2 -name a1"


@dataclass
class Desk:
    """A working folder beside a cluster that is up."""

    cluster: Cluster
    folder: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    @classmethod
    def made(cls, cluster: Cluster, folder: Path) -> "Desk":
        """A new one, with the shipped images told where the cluster has code and OFED."""
        served = cluster.document["downloads"]
        assert isinstance(served, dict)
        overlay.write(folder, served)
        return cls(cluster, folder)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / ".dlperf"

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command: this checkout, nothing of DLPERF_."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("DLPERF_")}
        return {**env, "PYTHONPATH": str(TESTS.parent), "COLUMNS": "200"}

    def run(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """A command of ours, to its end."""
        whole = {**self.env, **env}
        return self.cluster.run(*PROGRAM, *words, cwd=self.folder, env=whole, timeout_s=PATIENCE_S)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A command of ours, left running."""
        process = self.cluster.start(*PROGRAM, *words, cwd=self.folder, env=self.env)
        self.started.append(process)
        return process

    def json(self, *words: str, code: int = 0) -> Any:
        """The document of a command that ends with this exit code."""
        done = self.run(*words, "--json")
        assert done.returncode == code, done.stdout[-2000:] + done.stderr[-4000:]
        return json.loads(done.stdout)

    def playbook(self, name: str, text: str) -> str:
        """A playbook of this folder; its name."""
        path = self.folder / "playbooks" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return name

    def inventory(self, **changes: str) -> Path:
        """The cluster's inventory in this folder, words replaced; where it lies."""
        text = self.cluster.inventory.read_text()
        for old, new in changes.items():
            text = text.replace(old, new)
        path = self.folder / "mine.yaml"
        path.write_text(text)
        return path

    def sweeps(self) -> list[Path]:
        """Folders of sweeps, oldest first."""
        return sorted(path.parent for path in self.state.glob("sweeps/*/sweep.json"))

    def outcomes(self) -> Mapping[str, Any]:
        """By trial, the outcome that counts, of the newest sweep."""
        paths = self.sweeps()[-1].glob("logs/*/*.json")
        found = [json.loads(path.read_text()) for path in paths]
        return {each["trial"]: each for each in found}

    def left(self) -> dict[str, str]:
        """By node, containers and attempt folders of ours that are still there."""
        said = {node.name: node.sh(OURS).stdout.strip() for node in self.cluster.nodes}
        return {name: words for name, words in said.items() if words}

    def end(self) -> None:
        """End commands that were left running."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
