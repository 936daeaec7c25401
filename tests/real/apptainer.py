"""Apptainer as this machine has it, on the nodes of a virtual cluster, in its rootless way.

Nothing of it is built here: it is the program that ``REAL_APPTAINER`` names, or the one in the
PATH. Nodes see /usr, /opt and this checkout.
"""

import os
import shutil
from pathlib import Path

from tests.cluster import Cluster
from tests.cluster.slurm import shared

_NEEDED = ("squashfuse_ll", "mksquashfs", "perl")
# Root is as any user then: what serves the image is a process, not the kernel.
_ROOTLESS = """\
#!/bin/sh
APPTAINER_USERNS=1 exec {program} "$@"
"""
# Source: apptainer 1.4.5, CHANGELOG.md.
_AS_BEFORE = """\
#!/usr/bin/perl
# In the process group of apptainer itself, as it was before apptainer 1.4.5.
setpgrp(0, getpgrp(getppid())) or die "setpgrp: $!";
exec {{ "{program}" }} "squashfuse_ll", @ARGV or die "exec: $!";
"""


def program() -> str:
    """The program; empty where there is none."""
    return shutil.which(os.environ.get("REAL_APPTAINER") or "apptainer") or ""


def lacking() -> str:
    """What this machine lacks for running it, in words; empty if nothing."""
    missing = [name for name in _NEEDED if not shutil.which(name)]
    missing += [] if program() else ["apptainer (name one by REAL_APPTAINER)"]
    return f"not on this machine: {', '.join(missing)}" if missing else ""


def install(cluster: Cluster) -> Path:
    """A folder of programs that comes first in the PATH of a user of such a cluster."""
    folder = shared(cluster.place) / "programs"
    folder.mkdir()
    server = shutil.which("squashfuse_ll") or ""
    _write(folder / "apptainer", _ROOTLESS.format(program=program()))
    _write(folder / "squashfuse_ll", _AS_BEFORE.format(program=server))
    for node in cluster.nodes:
        node.must("mknod -m 666 /dev/fuse c 10 229")
    return folder


def left(cluster: Cluster) -> dict[str, str]:
    """By node, the processes of apptainer that are there."""
    look = "pgrep -l -f '^Apptainer runtime|[s]quashfuse_ll' || true"
    said = {node.name: node.must(look).strip() for node in cluster.nodes}
    return {name: words for name, words in said.items() if words}


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
