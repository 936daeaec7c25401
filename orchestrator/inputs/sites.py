"""Site files that provisioning wrote, and which inventory and nodes a command is about."""

import contextlib
import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from orchestrator import errors, nodeset
from orchestrator.console import Voice
from orchestrator.documents import MOST
from orchestrator.inputs import user_files
from orchestrator.model.cluster import Cluster
from orchestrator.model.site import Site
from orchestrator.model.text import shape
from orchestrator.state.store import Store

OF_JOBS = {"account", "nodes", "time"}  # of ``slurm:``, which say nothing of the nodes


def read(content: bytes, fix: str) -> Site:
    """Return the site in a site file's bytes; ``fix`` says what to do about a bad one.

    Raises:
        StoreError: STORE-DAMAGED; it is no site file of this version.
    """
    try:
        return shape(Site).validate_json(content)
    except ValueError as error:
        raise errors.StoreError(
            f"the site file cannot be read: {str(error).splitlines()[0]}",
            code="STORE-DAMAGED",
            fix=fix,
        ) from error


def of(store: Store, cluster: Cluster) -> Site | None:
    """Return a cluster's site; None if it was never provisioned or its file cannot be read."""
    content = store.site(cluster.name)
    return _read_or_skip(content) if content else None


def _read_or_skip(content: bytes) -> Site | None:
    try:
        return read(content, "provision again")
    except errors.StoreError:
        return None  # provisioning writes it again; it holds no measurement


def digest(cluster: Cluster) -> str:
    """Return the sha256 of what an inventory says of its nodes, whatever its formatting."""
    tree = cluster.model_dump(mode="json")
    if cluster.slurm is not None:  # whichever nodes it gives, how many and for how long
        asked = {key: value for key, value in tree["slurm"].items() if key not in OF_JOBS}
        tree = {**tree, "nodes": [], "slurm": asked}
    text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def inventory(
    store: Store, named: str | None, own: str | None, voice: Voice
) -> tuple[Cluster, Path]:
    """Return the inventory that is named, else the playbook's own, else the last one found fit.

    Where none is named, a line says which one it is and why.

    Raises:
        UsageError: NO-INVENTORY, or there is no such file.
    """
    if named is not None:
        return user_files.cluster(named)
    if own is not None:
        voice.line(f"inventory {own}: the playbook names it")
        return user_files.cluster(own)
    unfit: list[str] = []
    for content in store.sites():  # the newest first
        if (site := _read_or_skip(content)) is None:
            continue
        if all(found.severity != "error" for found in (*site.findings, *site.provisioned)):
            voice.line(f"inventory {site.inventory}: the last one found fit in {store.root}")
            if unfit:
                voice.line(f"not fit, though provisioned later: {', '.join(unfit)}")
            return user_files.cluster(site.inventory)
        unfit.append(site.inventory)
    raise errors.UsageError(
        f"no inventory is named, and no cluster was found fit in {store.root}"
        + (f", not even {', '.join(unfit)}" if unfit else ""),
        code="NO-INVENTORY",
        fix="name one with --inventory; to measure on it, `dlperf-orch provision` it first",
    )


def narrow(cluster: Cluster, pattern: str | None) -> Cluster:
    """Return the cluster with the nodes that a pattern names, in the order of the inventory.

    Args:
        pattern: names or globs with commas; with ``!`` before it, one leaves nodes out.
    """
    if pattern is None:
        return cluster
    names = match_names([entry.name for entry in cluster.nodes], pattern)
    nodes = tuple(entry for entry in cluster.nodes if entry.name in names)
    return cluster.model_copy(update={"nodes": nodes})


def leaving_out(
    cluster: Cluster, names: Iterable[str], least: int = 1, omitted: Set[str] = frozenset()
) -> str:
    """Return this command line without these nodes; empty if too few nodes would be left.

    Args:
        least: how many nodes must be left.
        omitted: words of the command line to leave out too.
    """
    # Errors of many nodes name them folded, such as vs[003-004].
    named = {name for text in names for name in nodeset.unfold_all(text, MOST)}
    out = [node.name for node in cluster.members if node.name in named]
    if not out or cluster.slurm is not None or len(cluster.members) - len(out) < least:
        return ""
    pattern = ",".join(f"!{name}" for name in out)
    words = ["dlperf-orch", *(word for word in sys.argv[1:] if word not in omitted)]
    before = [at for at, word in enumerate(words) if word.partition("=")[0] == "--nodes"]
    if before:
        at = before[-1] if "=" in words[before[-1]] else before[-1] + 1
        words[at] += f",{pattern}"
    else:
        words += ["--nodes", pattern]
    return shlex.join(words)


@contextlib.contextmanager
def way_out(cluster: Cluster, least: int = 1) -> Iterator[set[str]]:
    """Add to an error about some of the nodes the command line that leaves them out.

    It yields the set of words that this command line shall lack, for the block to fill.
    """
    omitted: set[str] = set()
    try:
        yield omitted
    except (errors.NodeError, errors.UnfitError) as error:
        names = (error.where.get("node", ""), *error.others)
        if command := leaving_out(cluster, names, least, omitted):
            error.fix = f"{error.fix}; or leave it out: `{command}`".removeprefix("; or ")
        raise


def match_names(names: Sequence[str], pattern: str) -> Set[str]:
    """Return those of the names that a pattern of ``narrow`` fits.

    Raises:
        UsageError: NO-NODE; a part of the pattern fits no node, or no node is left.
    """
    words = [word.strip() for word in pattern.split(",")]
    found = set(names) if all(word.startswith("!") for word in words) else set[str]()
    for word in words:
        fitting = [name for name in names if nodeset.fits(name, word.removeprefix("!"))]
        if not fitting:
            raise errors.UsageError(
                f"no node fits {word!r}; there are {', '.join(names)}",
                code="NO-NODE",
                fix="a name, a glob such as vs00[1-3], or !NAME to leave one out",
            )
        found = found - set(fitting) if word.startswith("!") else found | set(fitting)
    if not found:
        raise errors.UsageError(f"{pattern!r} leaves no node", code="NO-NODE")
    return found
