"""A folder where a person sweeps upstream's real programs over nodes that share this machine."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import commands
from tests.cluster import stubs

_HERE = Path(__file__).parent
_SHIPPED = _HERE.parents[1] / "images"
PROGRAM = (sys.executable, "-c", "from orchestrator.cli import main; main()")
PATIENCE_S = 1500.0
INVENTORY = """\
name: cpus
defaults:
  transport: local
  runtime: process
  interface: lo
  gpus: {count: 8}
  data: {data}
nodes:
  - {name: node1, address: 127.0.0.1}
  - {name: node2, address: 127.0.0.2}
  - {name: node3, address: 127.0.0.3}
  - {name: node4, address: 127.0.0.4}
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial that counts: what the orchestrator says of it, and its log."""

    name: str
    outcome: Any
    log: str


@dataclass(frozen=True, slots=True)
class Room:
    """A working folder whose commands see other folders at paths that programs have built in.

    Args:
        programs: first in the PATH: where python, mpirun and the like are.
        places: by absolute path, the folder that is seen there.
        data: by name, the paths of data sets, which have to be in those places.
    """

    folder: Path
    programs: Path
    places: Mapping[str, Path]
    data: Mapping[str, str]

    def image(self, name: str, code: Path | None = None) -> None:
        """Put a shipped image here; with code, its folder holds the program, as without Docker."""
        target = self.folder / "images" / name
        if code:
            shutil.copytree(code, target, symlinks=True)
        shutil.copytree(_SHIPPED / name, target, dirs_exist_ok=True)

    def swept(self, playbook: str, text: str, *words: str) -> list[Trial]:
        """Every trial of a sweep, all of them valid and without a problem."""
        path = self.folder / "playbooks" / f"{playbook}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self._inventory()
        ready = self.run("provision", "cpus")
        assert ready.returncode == 0, ready.stdout + ready.stderr
        done = self.run("sweep", playbook, "--inventory", "cpus", *words)
        trials = list(self._trials())
        said = [(trial.name, trial.outcome["problems"], trial.log[-2000:]) for trial in trials]
        assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-3000:], said)
        assert trials
        for trial in trials:
            assert (trial.outcome["state"], trial.outcome["problems"]) == ("valid", []), trial.name
        return trials

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of ours, to its end."""
        root, own = self.folder / "root", self.folder / "own"
        for folder in (root, own):
            folder.mkdir(exist_ok=True)
        # The lock of this machine lies in /var/tmp: rates mean nothing here, and nobody need wait.
        places = [f"{folder}={path}" for path, folder in {"/var/tmp": own, **self.places}.items()]
        enter = ("unshare", "--mount", "sh", str(_HERE / "room.sh"), str(root), *places, "--")
        return commands.run(
            [*enter, *PROGRAM, *words], cwd=self.folder, env=self._env(), timeout_s=PATIENCE_S
        )

    def inspected(self, trial: Trial, workload: str, *words: str) -> Any:
        """What ``inspect log`` makes of a trial's log."""
        path = self.folder / f"{trial.name}.log"
        path.write_text(trial.log)
        done = self.run("inspect", "log", str(path), "--workload", workload, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def _inventory(self) -> None:
        (self.folder / "inventory").mkdir(exist_ok=True)
        text = INVENTORY.replace("{data}", json.dumps(dict(self.data)))  # JSON is YAML
        (self.folder / "inventory" / "cpus.yaml").write_text(text)

    def _trials(self) -> Iterator[Trial]:
        """Those of the newest sweep."""
        newest = sorted(self.folder.glob(".dlperf/sweeps/*"))[-1:]
        for path in sorted(path for sweep in newest for path in sweep.glob("logs/*/*.json")):
            outcome = json.loads(path.read_text())
            log = path.with_suffix(".log")
            yield Trial(outcome["trial"], outcome, log.read_text() if log.exists() else "")

    def _env(self) -> dict[str, str]:
        hardware = self.folder / "hardware"
        if not hardware.exists():
            stubs.write(hardware)
        env = commands.environment()
        path = f"{self.programs}:{hardware}:{env['PATH']}"
        return {**env, "PATH": path, "PYTHONPATH": str(_HERE.parents[1]), "COLUMNS": "200"}
