"""Pyxis and enroot, built once from NVIDIA's source, on the Slurm of a virtual cluster."""

import os
import shutil
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tests import commands
from tests.cluster import Cluster
from tests.cluster.place import STANDARD_PATH
from tests.cluster.slurm import PARTITION, Slurm
from tests.processes import wait_for
from tests.real import sources

ENROOT = sources.Source(
    "https://github.com/NVIDIA/enroot.git", "bd51f53b6fa954805ae3e1985c5dc7594ff66d05"
)
"""Release 4.1.2."""
PYXIS = sources.Source(
    "https://github.com/NVIDIA/pyxis.git", "107519944221822ea1dace4db8e7234b2eaa4cd5"
)
"""Release 0.24.0."""
_NEEDED = ("musl-gcc", "make", "mksquashfs", "parallel", "curl", "jq", "zstd", "lsns", "column")
_SPANK = Path("/usr/include/slurm/spank.h")
FOUND = "/root/.local/share/enroot"
"""Where enroot keeps the files of containers that are there."""


class NoBuildError(Exception):
    """Pyxis cannot be built; says why."""


def lacking() -> str:
    """What this machine lacks for building and running them, in words; empty if nothing."""
    missing = [name for name in _NEEDED if not shutil.which(name)]
    missing += [] if _SPANK.exists() else [str(_SPANK)]
    return f"not on this machine: {', '.join(missing)}" if missing else ""


def built() -> Path:
    """Where both are installed, with bin, lib and etc: made in a few seconds if it never was."""
    code = {source.name: sources.unpacked(source) for source in (ENROOT, PYXIS)}
    prefix = sources.HOME / f"pyxis-{PYXIS.commit[:10]}-{ENROOT.commit[:10]}"
    with sources.alone():
        if not (prefix / "ready").exists():
            shutil.rmtree(prefix, ignore_errors=True)  # of a build that was cut short
            for name, folder in code.items():
                shutil.copytree(folder, prefix / "src" / name, symlinks=True)
            _enroot(prefix)
            _make(prefix / "src" / "pyxis", f"prefix={prefix}", "install")
            (prefix / "ready").touch()
    return prefix


def install(cluster: Cluster, prefix: Path) -> None:
    """Make every srun and slurmd of the cluster know pyxis, as an administrator would."""
    slurm = Slurm(cluster.place)
    plugin = f"required {prefix}/lib/slurm/spank_pyxis.so\n"
    (slurm.folder / "slurm" / "plugstack.conf").write_text(plugin)
    start = f"PATH={prefix}/bin:{STANDARD_PATH} sh /etc/testbed/daemon.sh slurmd {cluster.folder}"
    for node in cluster.nodes:
        node.signal("slurmd", "KILL")
        node.must(f"{start} </dev/null >>/var/log/slurmd.log 2>&1 &")
    known = "test -d /run/pyxis"
    wait_for(lambda: not any(node.sh(known).returncode for node in cluster.nodes), "pyxis there")
    idle = ("sinfo", "-h", "-t", "idle", "-p", PARTITION, "-o", "%D")
    wait_for(lambda: slurm.ask(*idle).strip() == str(len(cluster.nodes)), "idle nodes")


def left(cluster: Cluster) -> dict[str, str]:
    """By node, the root file systems of containers that are there, and mounts of enroot's."""
    look = f"ls -A {FOUND} 2>/dev/null; grep -sl enroot /proc/[0-9]*/mounts; true"
    said = {node.name: node.must(look).strip() for node in cluster.nodes}
    return {name: words for name, words in said.items() if words}


def _enroot(prefix: Path) -> None:
    """With Debian's musl and kernel headers, in the place of the submodules that have their source.

    Bundles, which need makeself, cannot be made.
    """
    folder = prefix / "src" / "enroot"
    headers = folder / "deps/dist/linux/include"
    (headers / "sys").mkdir(parents=True)
    (headers / "sys/cdefs.h").touch()  # musl has none; the headers ask for it
    for name, path in (
        ("linux", "/usr/include/linux"),
        ("asm-generic", "/usr/include/asm-generic"),
        ("asm", f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}/asm"),
    ):
        (headers / name).symlink_to(path)
    makeself = folder / "deps/dist/makeself/bin/enroot-makeself"
    makeself.parent.mkdir(parents=True)
    makeself.touch()
    words = ("FORCE_GLIBC=1", "CC=musl-gcc")  # their name for: take the compiler that is named
    _make(folder / "deps", *words, "libbsd", CPPFLAGS=f"-isystem {headers}")
    _make(folder, *words, "-o", "deps", f"prefix={prefix}", "install", LDFLAGS="-static")
    # The registry of a virtual cluster speaks HTTP.
    (prefix / "etc/enroot/enroot.conf.d/http.conf").write_text("ENROOT_ALLOW_HTTP yes\n")


def _make(folder: Path, *words: str, **env: str) -> None:
    argv: Sequence[str] = ("make", "-C", str(folder), *words)
    done = commands.run(argv, env={**os.environ, **env})
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise NoBuildError(f"{' '.join(argv)}: exit {done.returncode}: {said}")
