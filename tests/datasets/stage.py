"""The shipped scripts on this machine, in folders of their own."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from orchestrator.datasets import look
from orchestrator.preparing_data.prepare import find_problem, script
from tests import commands

STEM = "train-[0-9]{5}-of-[0-9]{5}"


@dataclass
class Stage:
    """A place where a data set comes to be."""

    folder: Path

    @property
    def partial(self) -> Path:
        """Where it comes to be."""
        return self.folder / "image.partial"

    @property
    def source(self) -> Path:
        """Where its sources are."""
        return self.folder / "from"

    def begin(self, way: str = "0", node: str = "vs001", nonce: str = "1") -> str:
        """What the script says that makes the folder."""
        words = (str(self.partial), "imagenet", node, nonce, way)
        return self.run("begin.sh", *words).stdout.strip()

    def label(self, text: str) -> None:
        """Say the classes of validation images."""
        (self.partial / "notes/labels").write_bytes(look.parse_labels(text, "valprep.sh"))

    def imagenet(self) -> "subprocess.CompletedProcess[str]":
        """Extract both tars."""
        return self.run("imagenet.sh", str(self.partial), str(self.source))

    def problem(self) -> tuple[str, str]:
        """Why extracting them fails."""
        done = self.imagenet()
        assert done.returncode == 3, done.stdout + done.stderr
        named = find_problem(done.stdout)
        assert named is not None
        return named

    def run(self, name: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """A shipped script, under the umask that tasks have."""
        within = f'umask 077; exec sh -c \'{_quoted(script(name))}\' "$0" "$@"'
        return commands.run(["sh", "-c", within, name, *words], timeout_s=60)

    def files(self) -> list[str]:
        """Every file of the set, by its path in there."""
        found = (self.partial / "set").rglob("*")
        return sorted(
            str(path.relative_to(self.partial / "set")) for path in found if path.is_file()
        )


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")
