"""Images as files in the state folder, which all nodes of a Slurm job see: imported once."""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator import errors
from orchestrator.console import Voice
from orchestrator.deadlines import PATIENCE, UNPACKED_S
from orchestrator.disk import on_disk
from orchestrator.fleet import Fleet
from orchestrator.inputs import user_files
from orchestrator.model.site import ImageRecord, Site
from orchestrator.planning.images import Action, reference
from orchestrator.runtimes import image_files
from orchestrator.runtimes.image_files import Contained
from orchestrator.schedulers import slurm_queue
from orchestrator.transports.local import LocalTransport
from orchestrator.transports.steps import Steps

# $1: the file; $2...: the command that writes "$1.new". Prints the file's sha256.
IMPORT = """
file=$1
shift
rm -f -- "$file.new" && "$@" >&2 && mv -- "$file.new" "$file" && sha256sum <"$file"
"""


def import_images(
    fleet: Fleet,
    state: Path,
    names: Sequence[str],
    site: Site,
    voice: Voice,
    *,
    anew: bool,
) -> tuple[Site, dict[str, Sequence[Action]]]:
    """Return the site with these images, each with its program beside it, and what was done.

    Args:
        state: the state folder, which all nodes see.
        site: with the images of the last provisioning.
        anew: import existing files again.
    """
    records, done = dict(site.images), dict[str, Sequence[Action]]()
    for name in names:
        image, folder = user_files.image(name)
        if image.parts or image.source or image.pip or image.packages or image.archive:
            raise errors.ImageError(
                f"image {name} is built by its Dockerfile, and nothing is built here: needed one"
                " that only adds its folder to its base",
                code="NO-BUILD",
                fix="choose such an image (reference-rn50), or runtime: docker",
            )
        file, digest, done[name] = _import_base(
            fleet, state / "images", image.base, {} if anew else site.images, voice
        )
        program = user_files.folder_digest(folder)
        whole = hashlib.sha256(f"{digest} {program}".encode()).hexdigest()
        code = state / "images" / f"{image.name}-{whole[:16]}"
        with on_disk(code):
            shutil.copytree(
                folder, code, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
            )
        _start(fleet, state, file)
        records[name] = ImageRecord(
            name=image.name,
            base=image.base,
            base_digest=digest,
            id=f"sha256:{whole}",
            tag=str(file),
            inputs_digest=f"sha256:{whole}",
            code=str(code),
            python=image.python,
            locked=False,
        )
    return replace(site, images=records, provisioned=()), done


def _import_base(
    fleet: Fleet, folder: Path, base: str, before: Mapping[str, ImageRecord], voice: Voice
) -> tuple[Path, str, Sequence[Action]]:
    at, way = reference(base), image_files.WAYS[fleet.cluster.members[0].runtime]
    plain = f"{at.host}-{at.repository}-{at.tag}".replace("/", "-").replace(":", "-")
    file = folder / f"{plain}{way.suffix}"
    known = {record.base_digest for record in before.values() if record.tag == str(file)}
    if file.is_file() and len(known) == 1:
        return file, known.pop(), ()
    registry = fleet.cluster.registry
    host = (registry.mirror if registry else None) or at.host
    node = next(iter(fleet.transports))
    voice.line(f"{node}: import {base} into {file}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = way.importing(host, f"{at.repository}:{at.tag}", f"{file}.new")
    argv = ("sh", "-c", IMPORT, "sh", str(file), *words)
    done = fleet.transports[node].run(argv, timeout_s=PATIENCE.work_s)
    if done.exit_code != 0:
        said = done.stderr.decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "no reason given")
        raise errors.ImageError(
            f"{words[0]} cannot import {base}: {last}",
            code="IMAGE-PULL",
            node=node,
            fix="mend what it says; the registry's credentials are those of "
            f"{words[0]} itself, on the node",
        )
    action = Action("import", node, base, "there is no file of it")
    return file, f"sha256:{done.stdout.decode().split()[0]}", (action,)


def _start(fleet: Fleet, state: Path, file: Path) -> None:
    """Check that a container starts on every node, and really is a container."""
    wanted = Contained(str(file), str(state))
    way = image_files.WAYS[fleet.cluster.members[0].runtime]
    nodes = list(fleet.transports)
    command = (*way.words(wanted), *image_files.proved(str(file)), "true")
    words = Steps(slurm_queue.job_id()).words(nodes, *way.options(wanted), *command)
    done = LocalTransport("shared").run(words, timeout_s=PATIENCE.start_s + UNPACKED_S)
    if done.exit_code == 0:
        return
    said = done.stderr.decode(errors="replace")
    node, cause = image_files.blame(said)
    raise errors.UnfitError(
        f"no container of {file} starts: {cause}",
        code="CONTAINER-START",
        fix="see whether srun knows the options of pyxis (`srun --help`), or apptainer is on"
        " every node",
        **({"node": node} if node else {}),
    )
